//! Tests that commands of people and programs are applied once, and are durable as soon as they are answered.

use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_postgres::{PostgresArchive, Target, migrate};
use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::hot_store::fresh_operation;
use switchyard_core::in_flight::{Command, NewRun, Want};
use switchyard_core::ir::Ir;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::*;
use switchyard_core::{ApprovalId, NodeError, PatchId, Payload, RunId, Timestamp};
use switchyard_store::{Archive, HotStore, StoreError};
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::free_port;
use switchyard_test_servers::postgres::{Postgres, Sync};
use switchyard_test_servers::proxy::Proxy;
use switchyard_test_servers::redis::Redis;
use tempfile::TempDir;

/// A store with its own server and archive.
struct Scene {
    server: Redis,
    store: Arc<RedisStore>,
    archive: Arc<dyn Archive>,
    irs: Vec<Arc<Ir>>,
    serial: u64,
    _folder: TempDir,
}

fn archive() -> (Arc<dyn Archive>, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = DataFolder::open(folder.path()).expect("a data folder");
    (Arc::new(data.archive().expect("an archive")), folder)
}

fn wider() -> Sketch {
    Sketch::chain(2).node("extra", &["n0"])
}

impl Scene {
    async fn new() -> Self {
        let (archive, folder) = archive();
        let server = Redis::start();
        let url = server.url();
        Self::with(server, &url, archive, folder).await
    }

    async fn with(server: Redis, url: &str, archive: Arc<dyn Archive>, folder: TempDir) -> Self {
        let store = RedisStore::open(RedisSettings::new(url), archive.clone()).await.expect("Redis answers");
        let irs = vec![Sketch::chain(2).ir(), wider().ir()];
        for ir in &irs {
            store.learn(ir.clone()).await.expect("learnt");
        }
        Self { server, store: Arc::new(store), archive, irs, serial: 0, _folder: folder }
    }

    async fn start(&mut self) -> RunId {
        self.serial += 1;
        let id = RunId::new(Timestamp::from_millis(1_700_000_000_000), self.serial, 0);
        let accepted = Accepted::plain("w".into(), self.irs[0].hash, Payload::null());
        self.store.accept(NewRun { id, accepted }).await.expect("accepted").run()
    }

    async fn claim(&self) -> Task {
        let lease = Some(Duration::from_secs(30));
        let want = Want { worker: "w".into(), queues: ["work".into()].into(), max: 1, lease };
        self.store.step(Vec::new(), &want).await.expect("claimed").1.remove(0)
    }

    async fn settle(&self, outcome: TaskOutcome) {
        let task = self.claim().await;
        let claim = ClaimRef { run: task.run, node: task.node, claim: task.claim };
        let want = Want::nothing("w".into());
        let settled = self.store.step(vec![Settlement { claim, outcome }], &want).await.expect("settled").0;
        assert_eq!(settled, [Settled::Applied]);
    }

    fn flush(&self) {
        self.order(&mut redis::cmd("FLUSHALL"));
    }

    fn order(&self, command: &mut redis::Cmd) {
        let client = redis::Client::open(self.server.url()).expect("an address");
        let mut connection = client.get_connection().expect("Redis answers");
        command.exec(&mut connection).expect("done");
    }

    async fn rebuilt(&self, run: RunId) -> Run {
        let events = self.archive.events(run, 0, 10_000).await.expect("read");
        Run::replay(&events, &|hash| self.irs.iter().find(|ir| ir.hash == hash).cloned()).expect("whole")
    }

    /// Makes a recovery pass as the engine does.
    async fn recover(&self) {
        let unfinished = self.archive.unfinished().await.expect("answered");
        let mut runs = Vec::new();
        for id in self.store.compare(&unfinished).await.expect("answered") {
            runs.push(self.rebuilt(id).await);
        }
        self.store.restore(runs).await.expect("restored");
    }

    /// How many archived events of a run carry this operation.
    async fn applied(&self, run: RunId, operation: &Operation) -> usize {
        self.store.archived().await.expect("archived");
        let events = self.archive.events(run, 0, 10_000).await.expect("read");
        events.iter().filter(|event| event.kind.operation() == Some(operation)).count()
    }
}

fn signal() -> Command {
    Command::Signal { name: "go".into(), payload: Payload::null() }
}

fn pause() -> Command {
    Command::Pause { by: "me".into() }
}

fn cancel() -> Command {
    Command::Cancel { by: "me".into(), reason: "".into(), compensate: false, now: false }
}

fn waits_for_signal() -> TaskOutcome {
    let on = WaitFor::Signal { name: "go".into(), timeout_at: None, on_timeout: SignalTimeout::Fail };
    TaskOutcome::Waiting(on)
}

fn asks(approval: &ApprovalId) -> TaskOutcome {
    TaskOutcome::Waiting(WaitFor::Approval(Box::new(ApprovalRequest {
        approval: approval.clone(),
        approver: None,
        prompt: None,
        payload: Payload::null(),
        timeout_at: None,
        on_timeout: ApprovalTimeout::Reject,
    })))
}

/// Redis loses everything right after the answer. The rebuilt run still has the effect of the command.
#[tokio::test]
async fn what_was_answered_outlives_redis() {
    let mut scene = Scene::new().await;
    for round in 0..5 {
        let paused = scene.start().await;
        scene.store.command(paused, fresh_operation(), pause()).await.expect("paused");
        scene.flush();
        scene.recover().await;
        assert!(scene.rebuilt(paused).await.paused);
        scene.store.command(paused, fresh_operation(), cancel()).await.expect("cancelled");
        scene.flush();
        scene.recover().await;
        let record = scene.archive.run(paused).await.expect("answered").expect("archived");
        assert_eq!(record.status, RunStatus::Cancelled);

        let run = scene.start().await;
        scene.settle(waits_for_signal()).await;
        scene.store.command(run, fresh_operation(), signal()).await.expect("signalled");
        scene.flush();
        scene.recover().await;
        let approval = ApprovalId::new(format!("appr_{round}"));
        scene.settle(asks(&approval)).await;
        let decide = Command::Decide {
            approval: approval.clone(),
            decision: Decision::Rejected,
            by: "me".into(),
            comment: "no".into(),
        };
        scene.store.command(run, fresh_operation(), decide).await.expect("decided");
        scene.flush();
        scene.recover().await;
        let record = scene.archive.run(run).await.expect("answered").expect("archived");
        assert_eq!(record.status, RunStatus::Failed, "it was rejected");

        scene.store.restore(vec![scene.rebuilt(run).await]).await.expect("restored");
        scene
            .store
            .command(run, fresh_operation(), Command::Retry { by: "me".into() })
            .await
            .expect("retried");
        scene.flush();
        scene.recover().await;
        assert_eq!(scene.store.snapshot(run).await.expect("answered").expect("under way").attempt, 2);
        scene.store.command(run, fresh_operation(), cancel()).await.expect("cancelled");

        let patched = scene.start().await;
        scene.store.command(patched, fresh_operation(), patch(&scene.irs[1])).await.expect("patched");
        scene.flush();
        scene.recover().await;
        let state = scene.store.snapshot(patched).await.expect("answered").expect("under way");
        assert_eq!((state.version, state.ir.hash), (2, scene.irs[1].hash));
        scene.store.command(patched, fresh_operation(), cancel()).await.expect("cancelled");
    }
}

fn patch(ir: &Ir) -> Command {
    let patched = Patched {
        patch: PatchId::new("patch_1"),
        version: 2,
        definition: ir.hash,
        author: "me".into(),
        reason: "".into(),
        ops: Payload::null(),
        diff: Vec::new(),
        undoes: None,
        operation: None,
    };
    Command::Patch { seen: 1, patched: Box::new(patched) }
}

/// Redis applies a command, and the connection breaks before its answer: the outcome is unknown, not refused, and a
/// retry with the same id gets the outcome.
#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_command_takes_effect_once() {
    let (port, (archive, folder)) = (free_port(), archive());
    let server = Redis::with_options(|_| vec!["--port".to_owned(), port.to_string()]);
    let proxy = Proxy::before(port);
    let mut scene =
        Scene::with(server, &format!("redis://127.0.0.1:{}", proxy.port()), archive, folder).await;
    let run = scene.start().await;
    scene.settle(waits_for_signal()).await;
    let sent = fresh_operation();
    proxy.lose_answer(b"signal_received", b"written", 0);
    let lost = scene.store.command(run, sent.clone(), signal()).await;
    assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
    assert!(proxy.has_lost_it());
    scene.store.command(run, sent.clone(), signal()).await.expect("answered as the first time");
    assert_eq!(scene.applied(run, &sent).await, 1);
    scene.settle(TaskOutcome::Succeeded(Payload::null())).await;

    // The same for a command that ends its run; then the archive answers.
    let run = scene.start().await;
    let sent = fresh_operation();
    proxy.lose_answer(b"run_closing", b"written", 0);
    let lost = scene.store.command(run, sent.clone(), cancel()).await;
    assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
    let again = scene.store.command(run, sent.clone(), cancel()).await;
    assert_eq!(again, Err(StoreError::UnknownRun(run)), "it has ended");
    assert_eq!(scene.applied(run, &sent).await, 1);
}

/// A call without a connection has changed nothing; neither has a read whose answer was lost.
#[tokio::test]
async fn what_was_not_sent_was_not_done() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    scene.server.stop();
    for _ in 0..2 {
        let refused = scene.store.command(run, fresh_operation(), pause()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
    scene.server.start_again();
}

/// Redis loses a command before it was archived: the caller does not get a success, and a retry applies it.
#[tokio::test]
async fn a_command_that_redis_lost_is_not_answered_as_done() {
    let mut scene = Scene::new().await;
    let run = scene.start().await;
    // Another process has the shipper's lock, and hangs.
    scene.order(redis::cmd("HSET").arg(scene.store.keys().ship_lock()).arg(&["owner", "x", "fence", "9"]));
    let (store, sent) = (scene.store.clone(), fresh_operation());
    let operation = sent.clone();
    let waiting = tokio::spawn(async move { store.command(run, operation, pause()).await });
    while !scene.store.snapshot(run).await.expect("answered").is_some_and(|state| state.paused) {
        tokio::task::yield_now().await;
    }
    scene.flush();
    let lost = waiting.await.expect("answered");
    assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
    scene.recover().await;
    assert!(!scene.rebuilt(run).await.paused);
    scene.store.command(run, sent.clone(), pause()).await.expect("done now");
    assert_eq!(scene.applied(run, &sent).await, 1);
}

/// While the archive is unavailable, commands are refused before Redis is changed; steps in flight continue.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_archive_nothing_is_decided() {
    let mut postgres = Postgres::start(Sync::Off);
    let target: Target = postgres.url().parse().expect("a URL");
    migrate(&target).await.expect("migrated");
    let archive: Arc<dyn Archive> = Arc::new(PostgresArchive::open(target).await.expect("Postgres answers"));
    let server = Redis::start();
    let url = server.url();
    let mut scene = Scene::with(server, &url, archive, tempfile::tempdir().expect("a folder")).await;
    let run = scene.start().await;
    postgres.stop();
    let sent = fresh_operation();
    let refused = scene.store.command(run, sent.clone(), pause()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let state = scene.store.snapshot(run).await.expect("answered").expect("under way");
    assert_eq!((state.paused, state.seq), (false, 1), "Redis was not asked");
    scene.settle(TaskOutcome::Succeeded(Payload::null())).await;
    scene.settle(TaskOutcome::Failed(NodeError::permanent("no", "no"))).await;
    postgres.start_again();
    scene.store.archived().await.expect("archived");
    let record = scene.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(record.status, RunStatus::Failed, "steps went on");
}
