//! Tests that `docs/reference/keys.md` documents every key of a used Redis.

use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::hot_store::fresh_operation;
use switchyard_core::in_flight::{Command, NewRun, Want};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    Accepted, ApprovalRequest, ApprovalTimeout, ClaimRef, Concurrency, Idempotency, Settlement, TaskOutcome,
    WaitFor,
};
use switchyard_core::{ApprovalId, Payload, RunId, Timestamp};
use switchyard_observe::Observe;
use switchyard_store::HotStore;
use switchyard_store::plain::{About, PlainWorkers};
use switchyard_store_redis::{
    CleanupPolicy, ConsumerMonitor, MonitorSettings, RedisSettings, RedisStore, WorkerReport,
};
use switchyard_test_servers::redis::Redis;

const PAGE: &str = include_str!("../../../docs/reference/keys.md");

/// Uses every feature that creates a key.
async fn use_it(server: &Redis) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = DataFolder::open(folder.path()).expect("a data folder");
    let archive = Arc::new(data.archive().expect("an archive"));
    let store = RedisStore::open(RedisSettings::new(server.url()), archive).await.expect("Redis answers");
    let ir = Sketch::new()
        .node("a", &[])
        .node("b", &[])
        .with(|b| b.priority = Some(1))
        .node("c", &[])
        .with(|c| c.priority = Some(9))
        .ir();
    store.learn(ir.clone()).await.expect("learnt");
    for serial in 0..2 {
        let accepted = Accepted {
            concurrency: Some(Concurrency { key: "tenant".into(), limit: 1 }),
            idempotency: Some(Idempotency { key: format!("order-{serial}").into(), body: ir.hash }),
            deadline: Some(Timestamp::from_millis(i64::MAX / 4_000)),
            ..Accepted::plain("w".into(), ir.hash, Payload::null())
        };
        let id = RunId::new(Timestamp::from_millis(1), serial, 0);
        store.accept(NewRun { id, accepted }).await.expect("accepted");
    }
    let lease = Some(Duration::from_secs(600));
    let want = Want { worker: "w".into(), queues: ["work".into()].into(), max: 2, lease };
    let tasks = store.step(Vec::new(), &want).await.expect("claimed").1;
    let request = ApprovalRequest {
        approval: ApprovalId::new("appr_1"),
        approver: Some("me".into()),
        prompt: None,
        payload: Payload::null(),
        timeout_at: None,
        on_timeout: ApprovalTimeout::Reject,
    };
    let claim = ClaimRef { run: tasks[0].run, node: tasks[0].node.clone(), claim: tasks[0].claim };
    let outcome = TaskOutcome::Waiting(WaitFor::Approval(Box::new(request)));
    let nothing = Want::nothing("w".into());
    store.step(vec![Settlement { claim, outcome }], &nothing).await.expect("settled");
    let signal = Command::Signal { name: "go".into(), payload: Payload::null() };
    store.command(tasks[0].run, fresh_operation(), signal).await.expect("signalled");
    store.step(Vec::new(), &want).await.expect("claimed");
    as_a_plain_worker(&store, tasks[0].run).await;
    look_after(&store).await;
}

async fn look_after(store: &RedisStore) {
    let admin = store.admin();
    let report = WorkerReport {
        name: "w".to_owned(),
        types: Vec::new(),
        slots: 1,
        busy: 0,
        host: "h".to_owned(),
        process: 1,
        version: "1".to_owned(),
        started: Timestamp::from_millis(1),
        holds: Duration::from_secs(30),
    };
    admin.report(&report).await.expect("reported");
    let day = Duration::from_secs(86_400);
    let cleanup = CleanupPolicy { idle_min: day, dry_run: false, lock: day, every: day };
    let rounds = MonitorSettings { cleanup, long: day, watch_every: Some(day) };
    let metrics = Observe::default().metrics().clone();
    let monitor = ConsumerMonitor { admin, metrics, pods: None, settings: rounds };
    monitor.clean_up().await.expect("cleaned up");
    monitor.watch(day).await.expect("looked through");
}

/// Leaves waiting signals, signals that are being settled, and an answer to a worker.
async fn as_a_plain_worker(store: &RedisStore, run: RunId) {
    for n in 0..101 {
        store.signal_again(&n.to_string()).await.expect("pushed");
    }
    store.take_signals().await.expect("taken");
    let about = About { run, node: "a".into(), delivery: Some("1-0".to_owned()), worker: "w".into() };
    store.answer(&about, "gone").await.expect("answered");
}

/// The pattern under which a key is documented.
fn pattern(key: &str) -> String {
    let fixed = [
        ("wf.tasks.", "type"),
        ("wf.high.", "type"),
        ("wf.low.", "type"),
        ("run:", "run"),
        ("dag:", "run"),
        ("context:", "run"),
        ("operations:", "run"),
        ("gate:", "key"),
        ("gate.line:", "key"),
        ("idempotency:", "key"),
        ("approval:", "approval"),
        ("ir:", "hash"),
        ("wf.lock:duty:", "duty"),
        ("worker:", "name"),
        ("completion_signals:processing:", "process"),
        ("task:", "run}:{node}:{entry"),
    ];
    if let Some(fence) = key.strip_prefix("wf.lock:duty:").and_then(|rest| rest.strip_suffix(":fence")) {
        assert!(!fence.is_empty());
        return "`wf.lock:duty:{duty}:fence`".to_owned();
    }
    match fixed.iter().find(|(begin, _)| key.starts_with(begin)) {
        Some((begin, name)) => format!("`{begin}{{{name}}}`"),
        None => format!("`{key}`"),
    }
}

#[tokio::test]
async fn every_key_is_documented() {
    let server = Redis::start();
    use_it(&server).await;
    let client = redis::Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("Redis answers");
    let found: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).expect("answered");
    assert!(found.len() >= 20, "too little was used: {found:?}");
    for key in found {
        assert!(PAGE.contains(&pattern(&key)), "{key} is not in docs/reference/keys.md");
    }
    // The hashes of a run stay packed, which keeps a run small.
    for hash in ["run", "dag"] {
        let key = format!("{hash}:{}", RunId::new(Timestamp::from_millis(1), 0, 0));
        let packed: String =
            redis::cmd("OBJECT").arg("ENCODING").arg(key).query(&mut connection).expect("answered");
        assert_eq!(packed, "listpack", "{hash}");
    }
}
