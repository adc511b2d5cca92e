//! A long list over Redis and Postgres, with outputs of 5 MB among those of its items.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchyard_archive_postgres::{Target, migrate};
use switchyard_archive_sqlite::Notice;
use switchyard_core::run::RunStatus;
use switchyard_host::distributed::{ArchiveAt, Distributed, Options};
use switchyard_lang::Program;
use switchyard_observe::Observe;
use switchyard_runtime::duties::PlainSettings;
use switchyard_runtime::kinds::NodeSettings;
use switchyard_runtime::{Handlers, Principal, Submission, WorkerSettings};
use switchyard_store_redis::{CleanupPolicy, MonitorSettings, RedisSettings};
use switchyard_test_servers::{postgres, redis};

const LEASE: Duration = Duration::from_secs(30);
const ITEMS: usize = 600;
const LARGE_EVERY: usize = 200;
const LARGE_BYTES: usize = 5_000_000;

async fn open(handlers: Handlers) -> Distributed {
    let target: Target = postgres::shared().url().parse().unwrap();
    let target = target.with_schema(&postgres::fresh_schema()).unwrap();
    migrate(&target).await.unwrap();
    let redis = RedisSettings { prefix: redis::fresh_prefix(), ..RedisSettings::new(redis::shared().url()) };
    let cleanup = CleanupPolicy { idle_min: LEASE, dry_run: false, lock: LEASE, every: LEASE };
    let options = Options {
        redis,
        archive: ArchiveAt::Postgres(Box::new(target)),
        cas: None,
        worker: Some(WorkerSettings::distributed("large", 8, LEASE)),
        nodes: NodeSettings::default(),
        handlers,
        retention: None,
        monitor: MonitorSettings { cleanup, long: LEASE, watch_every: None },
        pods: None,
        plain: PlainSettings { lease: LEASE },
        observe: Observe::default(),
        notice: Notice::default(),
    };
    Distributed::open(options).await.unwrap()
}

fn output_of(item: usize) -> Value {
    if item.is_multiple_of(LARGE_EVERY) { json!("x".repeat(LARGE_BYTES)) } else { json!(item) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_may_have_large_outputs() {
    let mut handlers = Handlers::with_builtins();
    handlers.register_fn("make", |input, _| async move {
        Ok(output_of(input.as_u64().unwrap_or_default() as usize))
    });
    let items: Vec<usize> = (0..ITEMS).collect();
    let make = json!({ "type": "function", "function": "make", "input": "${{ input }}" });
    let each = json!({ "type": "map", "items": items, "nodes": { "make": make } });
    let program = Program::compile_value(&json!({ "name": "large", "nodes": { "each": each } })).unwrap();
    let process = open(handlers).await;
    process.work();
    let run = process
        .engine()
        .submit(&Principal::local("tester"), Submission::new(Arc::new(program), json!({})))
        .await
        .unwrap()
        .run();
    process.engine().wait_for_end(run).await.unwrap();
    let history = process.engine().history();
    let view = history.view(&history.state(run, None).await.unwrap()).await.unwrap();
    assert_eq!((view.status, view.missing.len()), (RunStatus::Succeeded, 0));
    let outputs: Vec<Value> = serde_json::from_str(view.output.get()).unwrap();
    let expected = (0..ITEMS).map(output_of);
    assert!(outputs.into_iter().eq(expected), "each item has its own output");
    process.shut_down(Duration::ZERO).await;
}
