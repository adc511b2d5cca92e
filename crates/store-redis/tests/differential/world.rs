//! Gives the core and the stores the same commands, and compares them.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::*;
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::*;
use switchyard_core::{ApprovalId, Hash, OperationId, PatchId, Payload, RunId, Timestamp};
use switchyard_store::{Archive, Clock, HotStore, ManualClock, StoreError};
use switchyard_store_memory::MemoryStore;
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::redis::Redis;
use tempfile::TempDir;

use crate::ops::Op;
use crate::outcomes::How;
use crate::plain::Plain;

pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) server: &'static Redis,
    pub(crate) in_flight: InFlight,
    stores: Vec<Side>,
    pub(crate) plain: Plain,
    clock: ManualClock,
    histories: HashMap<RunId, Vec<Event>>,
    irs: HashMap<Hash, Arc<Ir>>,
    order: Vec<RunId>,
    graphs: Vec<Sketch>,
    drawn: HashMap<RunId, Sketch>,
    pub(crate) held: Vec<ClaimRef>,
    pub(crate) settled: Vec<ClaimRef>,
    approvals: Vec<ApprovalId>,
    /// Commands that took effect.
    applied: Vec<(RunId, Operation, Command)>,
    pub(crate) counter: u64,
}

/// A store with an archive of its own.
struct Side {
    name: &'static str,
    hot: Arc<dyn HotStore>,
    archive: Arc<dyn Archive>,
    _folder: TempDir,
}

/// A folder in memory if there is one, because these tests need no durable files.
fn quick_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

fn archive() -> (Arc<dyn Archive>, TempDir) {
    let folder = quick_folder();
    let data = DataFolder::open(folder.path()).expect("a data folder");
    (Arc::new(data.archive().expect("an archive")), folder)
}

impl World {
    pub(crate) async fn new(server: &'static Redis, stores: &[&'static str], graphs: Vec<Sketch>) -> Self {
        let mut world = Self {
            server,
            in_flight: InFlight::new(Limits::default()),
            stores: Vec::new(),
            plain: None,
            clock: ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000)),
            histories: HashMap::new(),
            irs: HashMap::new(),
            order: Vec::new(),
            graphs: Vec::new(),
            drawn: HashMap::new(),
            held: Vec::new(),
            settled: Vec::new(),
            approvals: Vec::new(),
            applied: Vec::new(),
            counter: 0,
        };
        for &name in stores {
            let (archive, folder) = archive();
            let hot = world.open(name, archive.clone()).await;
            world.stores.push(Side { name, hot, archive, _folder: folder });
        }
        for graph in &graphs {
            world.learn(graph.ir()).await;
        }
        world.learn(Sketch::chain(2).ir()).await;
        world.graphs = graphs;
        world
    }

    async fn open(&mut self, name: &str, archive: Arc<dyn Archive>) -> Arc<dyn HotStore> {
        let clock = Arc::new(self.clock.clone());
        if name == "memory" {
            return Arc::new(MemoryStore::new(archive, clock, Limits::default()));
        }
        let client = redis::Client::open(self.server.url()).expect("an address");
        let mut connection = client.get_connection().expect("Redis answers");
        redis::cmd("FLUSHALL").exec(&mut connection).expect("flushed");
        let settings = RedisSettings { clock: Some(clock), ..RedisSettings::new(self.server.url()) };
        let store = Arc::new(RedisStore::open(settings, archive).await.expect("Redis answers"));
        self.plain = Some(store.clone());
        store
    }

    async fn learn(&mut self, ir: Arc<Ir>) {
        self.irs.insert(ir.hash, ir.clone());
        for side in &self.stores {
            side.hot.learn(ir.clone()).await.expect("learnt");
        }
        self.in_flight.learn(ir);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn fresh(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn fresh_run(&mut self) -> RunId {
        let random = self.fresh();
        RunId::new(self.now(), random, 0)
    }

    fn pick(&self, which: u8) -> Option<RunId> {
        (!self.order.is_empty()).then(|| self.order[usize::from(which) % self.order.len()])
    }

    pub(crate) async fn act(&mut self, op: &Op) {
        let mut out = Vec::new();
        self.perform(op, &mut out).await;
        let mut touched: Vec<RunId> = out.iter().map(|event| event.run).collect();
        touched.sort();
        touched.dedup();
        for event in out {
            if event.seq == 1 {
                self.order.push(event.run);
            }
            if let EventKind::NodeWaiting { on: WaitFor::Approval(request), .. } = &event.kind {
                self.approvals.push(request.approval.clone());
            }
            self.histories.entry(event.run).or_default().push(event);
        }
        for run in touched {
            self.compare_run(run, op).await;
        }
    }

    async fn compare_run(&self, id: RunId, op: &Op) {
        let expected = self.in_flight.run(id);
        for side in &self.stores {
            let found = side.hot.snapshot(id).await.expect("answered");
            assert_eq!(found.as_ref(), expected, "{} differs about {id} after {op:?}", side.name);
        }
    }

    /// I6: asserts that each archive has exactly the events of the core.
    pub(crate) async fn compare_histories(&self) {
        for side in &self.stores {
            side.hot.archived().await.expect("archived");
            for (run, expected) in &self.histories {
                let found = side.archive.events(*run, 0, 100_000).await.expect("read");
                assert_eq!(found, *expected, "{} has another history of {run}", side.name);
            }
        }
    }

    /// Asks every store, and asserts that it answers as the core did.
    async fn ask<R: Debug, F: Future<Output = R>>(&self, expected: &R, ask: impl Fn(Arc<dyn HotStore>) -> F) {
        for side in &self.stores {
            let found = ask(side.hot.clone()).await;
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{} answers differently", side.name);
        }
    }

    async fn perform(&mut self, op: &Op, out: &mut Vec<Event>) {
        match op {
            Op::Accept { .. } => self.accept(op, out).await,
            Op::Claim { max, which } => self.step(Vec::new(), want(*max, *which), out).await,
            Op::Settle { which, claim } => {
                let settlements = self.settlements(which);
                self.step(settlements, want(*claim, 0), out).await;
            }
            Op::SettleAgain { which, how } => {
                if self.settled.is_empty() {
                    return;
                }
                let claim = self.settled[usize::from(*which) % self.settled.len()].clone();
                let outcome = how.outcome(self.now(), &mut self.counter);
                self.step(vec![Settlement { claim, outcome }], want(0, 0), out).await;
            }
            Op::Heartbeat { which } => self.heartbeat(*which).await,
            Op::Say { which, chunks } => self.say(*which, *chunks, out).await,
            Op::Pass { seconds } => self.pass(*seconds, out).await,
            Op::Cancel { run, compensate, now } => {
                let (compensate, now) = (*compensate, *now);
                let cancel = Command::Cancel { by: "me".into(), reason: "".into(), compensate, now };
                self.command(*run, cancel, out).await;
            }
            Op::Pause { run } => self.command(*run, Command::Pause { by: "me".into() }, out).await,
            Op::Resume { run } => self.command(*run, Command::Resume { by: "me".into() }, out).await,
            Op::Signal { run } => {
                let payload = Payload::from_value(&serde_json::json!({"n": self.counter}));
                self.command(*run, Command::Signal { name: "go".into(), payload }, out).await;
            }
            Op::Decide { approve } => self.decide(*approve, out).await,
            Op::Patch { run, what } => self.patch(*run, *what, out).await,
            Op::Retry { run } => self.retry(*run, out).await,
            Op::Repeat { which, changed } => self.repeat(*which, *changed, out).await,
            Op::Restart => self.restart(out).await,
            Op::Read { stream, said } => self.read_task(*stream, *said, out).await,
        }
    }

    async fn accept(&mut self, op: &Op, out: &mut Vec<Event>) {
        let &Op::Accept { graph, key, once, deadline, delay, priority } = op else { return };
        let sketch = self.graphs[usize::from(graph) % self.graphs.len()].clone();
        let (id, ir) = (self.fresh_run(), sketch.ir());
        let input = Payload::from_value(&serde_json::json!({"n": self.counter}));
        let accepted = Accepted {
            concurrency: key
                .map(|key| Concurrency { key: format!("key{}", key % 2).into(), limit: 1 + u32::from(key) }),
            idempotency: once.and_then(|once| self.unused(once)),
            deadline: deadline.then(|| self.now().plus(Duration::from_secs(50))),
            start_at: delay.map(|delay| self.now().plus(Duration::from_secs(delay.into()))),
            priority,
            ..Accepted::plain("sketch".into(), ir.hash, input)
        };
        self.drawn.insert(id, sketch);
        let new = NewRun { id, accepted };
        let expected = self.in_flight.accept(new.clone(), self.now(), out).map_err(StoreError::from);
        self.ask(&expected, |hot| {
            let new = new.clone();
            async move { hot.accept(new).await }
        })
        .await;
    }

    /// An idempotency key, unless a run that has ended used it: the archive answers for those, before a store is asked.
    fn unused(&self, once: u8) -> Option<Idempotency> {
        let key: Arc<str> = format!("once{}", once % 2).into();
        let used = self.histories.iter().any(|(run, history)| {
            let had = matches!(&history[0].kind,
                EventKind::RunAccepted(accepted) if accepted.idempotency.as_ref().is_some_and(|i| i.key == key));
            had && self.in_flight.run(*run).is_none()
        });
        (!used).then(|| Idempotency { key, body: Hash::of(&[once]) })
    }

    /// Makes settlements of held tasks. The same claim may be settled twice in one call.
    fn settlements(&mut self, which: &[(u8, How)]) -> Vec<Settlement> {
        let mut settlements = Vec::new();
        for (which, how) in which {
            if self.held.is_empty() {
                break;
            }
            let location = usize::from(*which) % self.held.len();
            let claim = self.held.swap_remove(location);
            self.settled.push(claim.clone());
            let outcome = how.outcome(self.now(), &mut self.counter);
            settlements.push(Settlement { claim: claim.clone(), outcome });
            if which % 16 == 0 {
                let outcome = How::Succeed(1).outcome(self.now(), &mut self.counter);
                settlements.push(Settlement { claim, outcome });
            }
        }
        settlements
    }

    async fn step(&mut self, settlements: Vec<Settlement>, want: Want, out: &mut Vec<Event>) {
        let now = self.now();
        let settled: Vec<Settled> = settlements
            .iter()
            .map(|settlement| self.in_flight.settle(settlement.clone(), now, out))
            .collect();
        let tasks = self.in_flight.claim(&want, now, out);
        self.held.extend(tasks.iter().map(claim_of));
        let expected = Ok::<_, StoreError>((settled, tasks));
        self.ask(&expected, |hot| {
            let (settlements, want) = (settlements.clone(), want.clone());
            async move { hot.step(settlements, &want).await }
        })
        .await;
    }

    async fn heartbeat(&mut self, which: u8) {
        let now = self.now();
        let known: Vec<ClaimRef> = self.held.iter().chain(&self.settled).cloned().collect();
        if known.is_empty() {
            return;
        }
        let claims: Vec<ClaimRef> = vec![known[usize::from(which) % known.len()].clone()];
        let lease = Some(LEASE);
        let standing: Vec<_> =
            claims.iter().map(|claim| self.in_flight.heartbeat(claim, lease, now)).collect();
        self.ask(&Ok::<_, StoreError>(standing), |hot| {
            let claims = claims.clone();
            async move { hot.heartbeat(&claims, lease).await }
        })
        .await;
        for claim in claims {
            let held = self.in_flight.held_task(&claim);
            self.ask(&Ok::<_, StoreError>(held), |hot| {
                let claim = claim.clone();
                async move { hot.held_task(&claim).await }
            })
            .await;
        }
    }

    async fn say(&mut self, which: u8, chunks: u8, out: &mut Vec<Event>) {
        let known: Vec<ClaimRef> = self.held.iter().chain(&self.settled).cloned().collect();
        if known.is_empty() {
            return;
        }
        let claim = known[usize::from(which) % known.len()].clone();
        let progress = match chunks {
            0 => Progress::Checkpoint(Payload::from_value(&serde_json::json!({"at": which}))),
            n => Progress::Chunks(vec![Payload::null(); usize::from(n)]),
        };
        let said =
            self.in_flight.progress(&claim, progress.clone(), self.now(), out).map_err(StoreError::from);
        self.ask(&said, |hot| {
            let (claim, progress) = (claim.clone(), progress.clone());
            async move { hot.progress(&claim, progress).await }
        })
        .await;
    }

    async fn pass(&mut self, seconds: u16, out: &mut Vec<Event>) {
        self.clock.advance(Duration::from_secs(u64::from(seconds)));
        let now = self.now();
        let fired = (self.in_flight.fire_due(now, out), self.in_flight.next_timer());
        self.ask(&Ok::<_, StoreError>(fired), |hot| async move { hot.fire_timers().await }).await;
        let reclaimed = self.in_flight.reclaim(now, out);
        self.ask(&Ok::<_, StoreError>(reclaimed), |hot| async move { hot.reclaim().await }).await;
    }

    async fn command(&mut self, run: u8, command: Command, out: &mut Vec<Event>) {
        let Some(run) = self.pick(run) else { return };
        self.give(run, command, out).await;
    }

    async fn give(&mut self, run: RunId, command: Command, out: &mut Vec<Event>) -> bool {
        let asked = Hash::of(format!("{command:?}").as_bytes());
        let operation = Operation { id: OperationId::drawn(self.fresh().into()), command: asked };
        let applied = self.send(run, &operation, &command, out).await;
        if applied {
            self.applied.push((run, operation, command));
        }
        applied
    }

    async fn send(
        &mut self,
        run: RunId,
        operation: &Operation,
        command: &Command,
        out: &mut Vec<Event>,
    ) -> bool {
        let expected = match self.in_flight.command(run, operation, command.clone(), self.now(), out) {
            None => Err(StoreError::UnknownRun(run)),
            Some(answer) => answer.map(drop).map_err(StoreError::from),
        };
        self.ask(&expected, |hot| {
            let (operation, command) = (operation.clone(), command.clone());
            async move { hot.command(run, operation, command).await }
        })
        .await;
        expected.is_ok()
    }

    /// Repeats a command with the same operation id, or sends another command with that id.
    async fn repeat(&mut self, which: u8, changed: bool, out: &mut Vec<Event>) {
        if self.applied.is_empty() {
            return;
        }
        let (run, mut operation, command) = self.applied[usize::from(which) % self.applied.len()].clone();
        if changed {
            operation.command = Hash::of(b"something else");
        }
        self.send(run, &operation, &command, out).await;
        assert!(out.is_empty(), "a repeated command changed something: {out:?}");
    }

    async fn decide(&mut self, approve: bool, out: &mut Vec<Event>) {
        let Some(approval) = self.approvals.pop() else { return };
        let run = self.in_flight.run_of_approval(&approval);
        self.ask(&Ok::<_, StoreError>(run), |hot| {
            let approval = approval.clone();
            async move { hot.run_of_approval(&approval).await }
        })
        .await;
        let Some(run) = run else { return };
        let decision = if approve { Decision::Approved } else { Decision::Rejected };
        self.give(run, Command::Decide { approval, decision, by: "me".into(), comment: "".into() }, out)
            .await;
    }

    async fn patch(&mut self, run: u8, what: u8, out: &mut Vec<Event>) {
        let Some(id) = self.pick(run) else { return };
        let (Some(sketch), Some(state)) = (self.drawn.get(&id), self.in_flight.run(id)) else { return };
        let (mut sketch, version) = (sketch.clone(), state.version);
        let target = usize::from(what / 4) % sketch.nodes.len();
        match what % 4 {
            0 | 1 => {
                let (fresh, need) = (format!("p{}", self.counter + 1), sketch.nodes[target].id.clone());
                sketch = sketch.node(&fresh, &[&need]);
                self.fresh();
            }
            2 => sketch.nodes[target].max_attempts += 1,
            _ => drop(sketch.nodes[target].needs.pop()),
        }
        let ir = sketch.ir();
        self.learn(ir.clone()).await;
        let patched = Patched {
            patch: PatchId::new(format!("patch_{}", self.fresh())),
            version: 0,
            definition: ir.hash,
            author: "me".into(),
            reason: "".into(),
            ops: Payload::null(),
            diff: Vec::new(),
            undoes: None,
            operation: None,
        };
        // Some patches are made for a version that is not the newest.
        let seen = if what == 255 { version + 1 } else { version };
        if self.give(id, Command::Patch { seen, patched: Box::new(patched) }, out).await {
            self.drawn.insert(id, sketch);
        }
    }

    fn replay(&self, id: RunId) -> Run {
        Run::replay(&self.histories[&id], &|hash| self.irs.get(&hash).cloned()).expect("the history is whole")
    }

    async fn retry(&mut self, run: u8, out: &mut Vec<Event>) {
        let Some(id) = self.pick(run) else { return };
        if self.in_flight.run(id).is_some() {
            return;
        }
        let ended = self.replay(id);
        if ended.accepted.parent.is_some() {
            return;
        }
        self.in_flight.restore(vec![ended.clone()], self.now(), out);
        self.ask(&Ok::<_, StoreError>(()), |hot| {
            let ended = ended.clone();
            async move { hot.restore(vec![ended]).await }
        })
        .await;
        self.give(id, Command::Retry { by: "me".into() }, out).await;
    }

    /// Loses everything in flight; only the archives are left.
    async fn restart(&mut self, out: &mut Vec<Event>) {
        self.compare_histories().await;
        let runs: Vec<Run> =
            self.order.iter().map(|id| self.replay(*id)).filter(|run| !run.is_ended()).collect();
        self.in_flight = InFlight::new(Limits::default());
        for ir in self.irs.values() {
            self.in_flight.learn(ir.clone());
        }
        for i in 0..self.stores.len() {
            let (name, archive) = (self.stores[i].name, self.stores[i].archive.clone());
            let hot = self.open(name, archive).await;
            for ir in self.irs.values() {
                hot.learn(ir.clone()).await.expect("learnt");
            }
            self.stores[i].hot = hot;
        }
        self.in_flight.restore(runs.clone(), self.now(), out);
        self.ask(&Ok::<_, StoreError>(()), |hot| {
            let runs = runs.clone();
            async move { hot.restore(runs).await }
        })
        .await;
        self.settled.append(&mut self.held);
    }
}

fn want(max: u8, which: u8) -> Want {
    let queues: &[&str] = match which % 6 {
        0 => &["work", "other", "function:*"],
        1 => &["o*", "work"],
        2 => &["function:b", "work", "function:a"],
        3 => &["function:a"],
        4 => &["function*"],
        _ => &["*"],
    };
    let queues = queues.iter().map(|&queue| queue.into()).collect();
    Want { worker: "w \"1\"".into(), queues, max: usize::from(max), lease: Some(LEASE) }
}

pub(crate) fn claim_of(task: &Task) -> ClaimRef {
    ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim }
}
