//! Figures of the store on this machine: memory of an active run, and steps a second beside the plain call rate of a
//! script that gives Redis the same commands.
//!
//! `cargo run --release -p switchyard-store-redis --example figures`
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use switchyard_archive::DataFolder;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, ClaimRef, Settlement, Task, TaskOutcome};
use switchyard_core::yard::{NewRun, Want};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::HotStore;
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::redis::Redis;
use tokio_util::sync::CancellationToken;

const NODES: usize = 10;
const SLOTS: usize = 50;
const PLAIN_CALLS: usize = 20_000;

#[tokio::main]
async fn main() {
    let server = Redis::start();
    let folder = tempfile::tempdir().expect("a folder");
    let data = DataFolder::open(folder.path()).expect("a data folder");
    let archive = Arc::new(data.archive().expect("an archive"));
    let store = RedisStore::open(RedisSettings::new(server.url()), archive).await.expect("Redis answers");
    let store = Arc::new(store);
    store.learn(Sketch::chain(NODES).ir()).await.expect("learnt");
    memory(&server, &store).await;
    flush(&server);
    store.learn(Sketch::chain(NODES).ir()).await.expect("learnt");
    let before = cpu_micros(&server);
    let plain = plain_calls(&server).await;
    println!("plain calls of the same commands, {SLOTS} at once: {plain:.0}/s");
    println!(
        "  processor time of Redis: {:.1} µs a call",
        (cpu_micros(&server) - before) / PLAIN_CALLS as f64
    );
    accept(&store, 600).await;
    let before = cpu_micros(&server);
    report("outbox left to grow", chain(&store, 600).await, plain);
    let steps = (600 * NODES) as f64;
    println!("  processor time of Redis: {:.1} µs a step", (cpu_micros(&server) - before) / steps);
    store.archived().await.expect("archived");
    let stop = CancellationToken::new();
    let shipper = tokio::spawn(store.clone().ship_forever(stop.clone()));
    accept(&store, 600).await;
    report("shipped to SQLite meanwhile", chain(&store, 600).await, plain);
    stop.cancel();
    shipper.await.expect("it ends");
}

fn report(how: &str, steps: f64, plain: f64) {
    println!(
        "chain of {NODES}, {SLOTS} at once, {how}: {steps:.0} steps/s, {:.2} of plain calls",
        steps / plain
    );
}

fn connection(server: &Redis) -> redis::Connection {
    let client = redis::Client::open(server.url()).expect("an address");
    client.get_connection().expect("Redis answers")
}

fn flush(server: &Redis) {
    redis::cmd("FLUSHALL").exec(&mut connection(server)).expect("flushed");
}

fn used(server: &Redis) -> usize {
    let info: String = redis::cmd("INFO").arg("memory").query(&mut connection(server)).expect("answered");
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("used_memory");
    line.trim().parse().expect("a number")
}

/// Processor time that the server has used, in microseconds.
fn cpu_micros(server: &Redis) -> f64 {
    let info: String = redis::cmd("INFO").arg("cpu").query(&mut connection(server)).expect("answered");
    let seconds = |name: &str| -> f64 {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).expect("processor time");
        line.trim_start_matches(':').trim().parse().expect("a number")
    };
    (seconds("used_cpu_user:") + seconds("used_cpu_sys:")) * 1e6
}

async fn accept(store: &RedisStore, count: u64) {
    let definition = Sketch::chain(NODES).ir().hash;
    for i in 0..count {
        let id = RunId::new(Timestamp::from_millis(1_700_000_000_000), rand::random::<u64>() ^ i, 0);
        let input = Payload::from_value(&serde_json::json!({"company": "acme", "n": i}));
        let accepted = Accepted::plain("enrich".into(), definition, input);
        store.accept(NewRun { id, accepted }).await.expect("accepted");
    }
}

fn want(max: usize) -> Want {
    let lease = Some(Duration::from_secs(30));
    Want { worker: "worker-1".into(), queues: ["work".into()].into(), max, lease }
}

fn done(task: &Task) -> Settlement {
    let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
    let output =
        Payload::from_value(&serde_json::json!({"status": 200, "body": {"id": 17, "name": "Acme Inc."}}));
    Settlement { claim, outcome: TaskOutcome::Succeeded(output) }
}

/// What a run takes: as accepted, and with half of its nodes done and one held.
async fn memory(server: &Redis, store: &RedisStore) {
    const RUNS: u64 = 2_000;
    let before = used(server);
    accept(store, RUNS).await;
    store.archived().await.expect("archived");
    let accepted = used(server);
    println!("memory of a run of {NODES} nodes, as accepted: {} bytes", (accepted - before) as u64 / RUNS);
    for _ in 0..NODES / 2 {
        let mut left = RUNS as usize;
        while left > 0 {
            let tasks = store.step(Vec::new(), &want(200)).await.expect("claimed").1;
            left -= tasks.len();
            store.step(tasks.iter().map(done).collect(), &want(0)).await.expect("settled");
        }
        store.archived().await.expect("archived");
    }
    let mut left = RUNS as usize;
    while left > 0 {
        left -= store.step(Vec::new(), &want(200)).await.expect("claimed").1.len();
    }
    store.archived().await.expect("archived");
    let halfway = used(server);
    println!("the same, half of them done and one held: {} bytes", (halfway - before) as u64 / RUNS);
}

/// Steps a second of slots that settle and claim in one call each.
async fn chain(store: &Arc<RedisStore>, runs: u64) -> f64 {
    let (steps, began) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let total = usize::try_from(runs).unwrap_or(0) * NODES;
    let slots = (0..SLOTS).map(|_| {
        let (store, steps) = (store.clone(), steps.clone());
        tokio::spawn(async move {
            let mut settled: Vec<Settlement> = Vec::new();
            while steps.load(Ordering::Relaxed) < total {
                let count = settled.len();
                let (_, tasks) = store.step(std::mem::take(&mut settled), &want(1)).await.expect("a step");
                steps.fetch_add(count, Ordering::Relaxed);
                settled.extend(tasks.first().map(done));
            }
        })
    });
    for slot in slots.collect::<Vec<_>>() {
        slot.await.expect("it ends");
    }
    total as f64 / began.elapsed().as_secs_f64()
}

/// The commands of a step of a chain, without any thought between them.
const PLAIN: &str = r"
local k = ARGV[1]
redis.call('HMGET', k .. 'run', 'seq', 'gen', 'phase', 'paused', 'counter', 'approvals', 'definition', 'flags', 'at')
redis.call('HMGET', k .. 'dag', 'n0', 'n1')
redis.call('XACK', k .. 's', 'workers', ARGV[2])
redis.call('XDEL', k .. 's', ARGV[2])
redis.call('ZREM', k .. 'l', 'lease')
redis.call('HSET', k .. 'context', 'n0:output', ARGV[3])
redis.call('XADD', k .. 's', '*', 'run_id', ARGV[3], 'node_id', 'n1', 'gen', '1', 'reads', 'n0', 'needs', '1')
redis.call('HGETALL', k .. 'queued')
local read = redis.call('XREADGROUP', 'GROUP', 'workers', 'w', 'COUNT', 1, 'STREAMS', k .. 's', '>')
redis.call('HMGET', k .. 'dag', 'n0')
redis.call('ZADD', k .. 'l', 1, 'lease')
redis.call('HMGET', k .. 'context', 'input', 'n0:output', 'n0:error')
redis.call('XADD', k .. 'outbox', 'MAXLEN', '~', 1000, '*', 'h', ARGV[3], 'b', ARGV[3], 'h', ARGV[3], 'b', ARGV[3])
redis.call('HSET', k .. 'dag', 'n0', 'S 1 1 0 1 0 0 5 9 3 0', 'n1', 'R 1 1 0 1 0 1 9 - 0 0 1700000000000-0')
redis.call('HSET', k .. 'run', 'seq', 5, 'counter', 1, 'phase', 'running')
return { { 'applied' }, { read[1][2][1][1], ARGV[3] } }
";

async fn plain_calls(server: &Redis) -> f64 {
    let client = redis::Client::open(server.url()).expect("an address");
    let connection = client.get_multiplexed_async_connection().await.expect("Redis answers");
    let hash: String = redis::cmd("SCRIPT")
        .arg("LOAD")
        .arg(PLAIN)
        .query_async(&mut connection.clone())
        .await
        .expect("loaded");
    let began = Instant::now();
    let slots = (0..SLOTS).map(|slot| {
        let (mut connection, hash) = (connection.clone(), hash.clone());
        tokio::spawn(async move {
            let begin = format!("plain{slot}:");
            let mut group = redis::cmd("XGROUP");
            group.arg("CREATE").arg(format!("{begin}s")).arg("workers").arg("0").arg("MKSTREAM");
            group.query_async::<()>(&mut connection).await.expect("made");
            let mut entry = "0-1".to_owned();
            for _ in 0..PLAIN_CALLS / SLOTS {
                let mut call = redis::cmd("EVALSHA");
                call.arg(&hash).arg(0).arg(&begin).arg(&entry).arg("x".repeat(60));
                let (_, read): (Vec<String>, Vec<String>) =
                    call.query_async(&mut connection).await.expect("answered");
                entry.clone_from(&read[0]);
            }
        })
    });
    for slot in slots.collect::<Vec<_>>() {
        slot.await.expect("it ends");
    }
    PLAIN_CALLS as f64 / began.elapsed().as_secs_f64()
}
