//! Tests several processes on one Redis: they work on the same runs at the same time, and no step is lost or applied
//! twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_sqlite::DataFolder;
use switchyard_core::error::NodeError;
use switchyard_core::in_flight::{NewRun, Want};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    Accepted, ChildSpec, ChildrenPlan, ClaimRef, Concurrency, Event, EventKind, Run, RunStatus, Settlement,
    Task, TaskOutcome, WaitFor,
};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{Archive, Clock, HotStore, SystemClock};
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::redis;
use tokio_util::sync::CancellationToken;

const STORES: usize = 3;
const RUNS: u64 = 60;
const CHILDREN: u64 = 5;

fn parent() -> Sketch {
    Sketch::new()
        .node("a", &[])
        .with(|a| a.max_attempts = 3)
        .node("b", &[])
        .node("map", &["a", "b"])
        .node("z", &["map"])
}

fn run_id(serial: u64) -> RunId {
    RunId::new(Timestamp::from_millis(1_700_000_000_000), serial, 0)
}

/// The outcome of a task: the first attempt at `a` fails, `map` starts children once.
fn outcome(task: &Task, serial: u64) -> TaskOutcome {
    match (&*task.node, task.attempt, &task.children) {
        ("a", 1, _) => TaskOutcome::Failed(NodeError::retryable("oops", "it failed")),
        ("map", _, None) => {
            let child = |i| ChildSpec::plain(run_id(1_000_000 + serial * 100 + i), Payload::null());
            TaskOutcome::Waiting(WaitFor::Children(Box::new(ChildrenPlan {
                workflow: "child".into(),
                definition: Sketch::chain(2).ir().hash,
                children: (0..CHILDREN).map(child).collect(),
                concurrency: 3,
                stop_on_failure: true,
                timeout_at: None,
            })))
        }
        _ => TaskOutcome::Succeeded(Payload::from_value(&serde_json::json!({"node": *task.node}))),
    }
}

async fn work(
    store: Arc<RedisStore>,
    name: String,
    serials: Arc<HashMap<RunId, u64>>,
    stop: CancellationToken,
) {
    let lease = Some(Duration::from_secs(60));
    let want = Want { worker: name.into(), queues: ["work".into()].into(), max: 2, lease };
    let mut done: Vec<Settlement> = Vec::new();
    while !stop.is_cancelled() {
        let (_, tasks) = store.step(std::mem::take(&mut done), &want).await.expect("a step");
        for task in &tasks {
            let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
            let serial = serials.get(&task.run).copied().unwrap_or(0);
            let settlement = Settlement { claim, outcome: outcome(task, serial) };
            // Some settlements are sent twice.
            if task.claim % 3 == 0 {
                done.push(settlement.clone());
            }
            done.push(settlement);
        }
        if tasks.is_empty() {
            tokio::select! {
                () = store.work_ready(&want) => {}
                () = stop.cancelled() => {}
            }
        }
    }
}

/// Fires due timers, and sleeps until the next is due.
async fn keep_time(store: Arc<RedisStore>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let (_, next) = store.fire_timers().await.expect("fired");
        let due = async {
            match next {
                Some(at) => SystemClock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = store.timers_changed() => {}
            () = stop.cancelled() => {}
        }
    }
}

fn check(run: RunId, events: &[Event]) {
    assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq), "{run} has gaps");
    let mut ended = HashSet::new();
    for event in events {
        if let EventKind::NodeSucceeded { node, .. } = &event.kind {
            assert!(ended.insert(node.clone()), "node {node} of {run} succeeded twice");
        }
    }
    let irs = [parent().ir(), Sketch::chain(2).ir()];
    let find = |hash| irs.iter().find(|ir| ir.hash == hash).cloned();
    Run::replay(events, &find).expect("a whole history");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_share_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = DataFolder::open(folder.path()).expect("a data folder");
    let archive: Arc<dyn Archive> = Arc::new(data.archive().expect("an archive"));
    let settings =
        RedisSettings { prefix: redis::fresh_prefix(), ..RedisSettings::new(redis::shared().url()) };
    let mut stores = Vec::new();
    for _ in 0..STORES {
        let store = RedisStore::open(settings.clone(), archive.clone()).await.expect("Redis answers");
        stores.push(Arc::new(store));
    }
    stores[0].learn(parent().ir()).await.expect("learnt");
    stores[0].learn(Sketch::chain(2).ir()).await.expect("learnt");

    let serials: HashMap<RunId, u64> = (0..RUNS).map(|serial| (run_id(serial), serial)).collect();
    let (serials, stop) = (Arc::new(serials), CancellationToken::new());
    let mut working = tokio::task::JoinSet::new();
    for (i, store) in stores.iter().enumerate() {
        working.spawn(store.clone().ship_forever(stop.clone()));
        working.spawn(keep_time(store.clone(), stop.clone()));
        for slot in 0..4 {
            working.spawn(work(store.clone(), format!("w{i}-{slot}"), serials.clone(), stop.clone()));
        }
    }
    let mut followed = Vec::new();
    for serial in 0..RUNS {
        let store = &stores[serial as usize % STORES];
        let accepted = Accepted {
            concurrency: (serial % 2 == 0)
                .then(|| Concurrency { key: format!("tenant-{}", serial % 3).into(), limit: 2 }),
            ..Accepted::plain("w".into(), parent().ir().hash, Payload::null())
        };
        followed.push(stores[(serial as usize + 1) % STORES].follow(run_id(serial)));
        store.accept(NewRun { id: run_id(serial), accepted }).await.expect("accepted");
    }
    for mut news in followed {
        let ended =
            tokio::time::timeout(Duration::from_secs(120), news.wait_for(|change| change.ended)).await;
        ended.expect("every run ends").expect("the store lives");
    }
    stop.cancel();
    while let Some(done) = working.join_next().await {
        done.expect("no task panicked");
    }
    for serial in 0..RUNS {
        let children = (0..CHILDREN).map(|i| run_id(1_000_000 + serial * 100 + i));
        for run in children.chain([run_id(serial)]) {
            let record = archive.run(run).await.expect("answered").expect("archived");
            assert_eq!(record.status, RunStatus::Succeeded);
            check(run, &archive.events(run, 0, 10_000).await.expect("read"));
        }
    }
    stores[0].archived().await.expect("archived");
    assert_eq!(stores[0].size().await.expect("answered").runs, 0);
    // The processes unsubscribe from runs that have ended.
    let unsubscribed = tokio::time::timeout(Duration::from_secs(20), until_nobody_listens(&settings)).await;
    unsubscribed.expect("a channel for each run would stay for ever");
}

async fn until_nobody_listens(settings: &RedisSettings) {
    let client = ::redis::Client::open(settings.url.as_str()).expect("a URL");
    let mut connection = client.get_multiplexed_async_connection().await.expect("Redis answers");
    let mut ask = ::redis::cmd("PUBSUB");
    ask.arg("CHANNELS").arg(format!("{}run:*", settings.prefix));
    while !ask.query_async::<Vec<String>>(&mut connection).await.expect("answered").is_empty() {}
}
