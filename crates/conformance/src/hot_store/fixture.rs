//! A store under test, and shorthand for tests.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::error::NodeError;
use switchyard_core::in_flight::{Command, NewRun, Want};
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    Accepted, ClaimRef, Event, EventKind, Operation, Run, RunStatus, Settled, Settlement, Task, TaskOutcome,
};
use switchyard_core::{Hash, OperationId, Payload, RunId, Timestamp};
use switchyard_store::{Archive, Clock, HotStore, ManualClock, StoreError};

/// Opens stores. Each is empty and independent of the others.
#[async_trait]
pub trait Backend: Send + Sync {
    async fn open(&self) -> Fixture;
}

pub struct Fixture {
    pub hot: Arc<dyn HotStore>,
    pub archive: Arc<dyn Archive>,
    pub clock: ManualClock,
    /// A folder or server that must live as long as the store.
    _guard: Box<dyn Any + Send + Sync>,
    serial: AtomicU64,
}

impl std::fmt::Debug for Fixture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fixture").finish_non_exhaustive()
    }
}

/// An operation that no other call of this process has.
pub fn fresh_operation() -> Operation {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let id = OperationId::drawn(SERIAL.fetch_add(1, Ordering::Relaxed).into());
    Operation { id, command: Hash::of(b"asked") }
}

/// How long claims last in these tests.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

impl Fixture {
    pub fn new(
        hot: Arc<dyn HotStore>,
        archive: Arc<dyn Archive>,
        clock: ManualClock,
        guard: impl Any + Send + Sync,
    ) -> Self {
        Self { hot, archive, clock, _guard: Box::new(guard), serial: AtomicU64::new(1) }
    }

    /// A clock for a new store: any time but zero will do.
    pub fn clock() -> ManualClock {
        ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000))
    }

    pub(crate) fn fresh_run(&self) -> RunId {
        RunId::new(self.clock.now(), self.serial.fetch_add(1, Ordering::Relaxed), 0)
    }

    /// A command with an operation id of its own.
    pub(crate) async fn command(&self, run: RunId, command: Command) -> Result<(), StoreError> {
        self.hot.command(run, fresh_operation(), command).await
    }

    pub(crate) async fn learn(&self, sketch: &Sketch) -> Arc<Ir> {
        let ir = sketch.ir();
        self.hot.learn(ir.clone()).await.expect("a graph is learnt");
        ir
    }

    pub(crate) async fn plain(&self, sketch: &Sketch) -> Accepted {
        let ir = self.learn(sketch).await;
        Accepted::plain("sketch".into(), ir.hash, Payload::null())
    }

    pub(crate) async fn start(&self, sketch: &Sketch) -> RunId {
        let accepted = self.plain(sketch).await;
        self.start_as(accepted).await
    }

    pub(crate) async fn start_as(&self, accepted: Accepted) -> RunId {
        let new = NewRun { id: self.fresh_run(), accepted };
        self.hot.accept(new).await.expect("a run is accepted").run()
    }

    pub(crate) fn want(&self, max: usize) -> Want {
        Want { worker: "tester".into(), queues: ["work".into()].into(), max, lease: Some(LEASE) }
    }

    pub(crate) async fn claim(&self, max: usize) -> Vec<Task> {
        self.hot.step(Vec::new(), &self.want(max)).await.expect("a claim is answered").1
    }

    /// Claims one task, and asserts that it is this node's.
    pub(crate) async fn claim_node(&self, node: &str) -> Task {
        let mut tasks = self.claim(1).await;
        let task = tasks.pop().unwrap_or_else(|| panic!("nothing to claim, expected `{node}`"));
        assert_eq!(&*task.node, node);
        task
    }

    pub(crate) async fn settle(&self, task: &Task, outcome: TaskOutcome) -> Settled {
        let settlement = Settlement { claim: claim_of(task), outcome };
        let want = Want::nothing("tester".into());
        self.hot.step(vec![settlement], &want).await.expect("a settlement is answered").0[0]
    }

    pub(crate) async fn succeed(&self, task: &Task) {
        let settled = self.settle(task, TaskOutcome::Succeeded(Payload::null())).await;
        assert_eq!(settled, Settled::Applied, "{task:?}");
    }

    /// Claims this node and lets it succeed.
    pub(crate) async fn pass(&self, node: &str) {
        let task = self.claim_node(node).await;
        self.succeed(&task).await;
    }

    pub(crate) async fn nothing_to_claim(&self) {
        let tasks = self.claim(10).await;
        assert!(tasks.is_empty(), "nothing should be ready: {tasks:?}");
    }

    pub(crate) async fn state(&self, run: RunId) -> Run {
        self.hot.snapshot(run).await.expect("answered").unwrap_or_else(|| panic!("{run} is not in flight"))
    }

    /// The archived history, after every earlier answer is in the archive.
    pub(crate) async fn events(&self, run: RunId) -> Vec<Event> {
        self.hot.archived().await.expect("the archive is there");
        self.archive.events(run, 0, 10_000).await.expect("events are read")
    }

    /// Asserts that the run has ended with this status and is archived.
    pub(crate) async fn ended(&self, run: RunId, status: RunStatus) {
        assert!(self.hot.snapshot(run).await.expect("answered").is_none(), "{run} is still in flight");
        let record = self.archive.run(run).await.expect("answered").expect("archived");
        assert_eq!(record.status, status, "{record:?}");
        let events = self.events(run).await;
        let gapless = events.iter().zip(1..).all(|(event, seq)| event.seq == seq);
        assert!(gapless && matches!(events.last().map(|e| &e.kind), Some(EventKind::RunEnded { .. })));
    }
}

pub(crate) fn claim_of(task: &Task) -> ClaimRef {
    ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim }
}

pub(crate) fn failure() -> TaskOutcome {
    TaskOutcome::Failed(NodeError::permanent("oops", "it failed"))
}

pub(crate) fn passing_failure() -> TaskOutcome {
    TaskOutcome::Failed(NodeError::retryable("oops", "it failed"))
}
