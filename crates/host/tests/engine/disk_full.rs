//! A full disk is a clear error, not a lost run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchyard_archive_sqlite::{DataFolder, Options as ArchiveOptions, SqliteArchive};
use switchyard_core::in_flight::Limits;
use switchyard_core::run::RunStatus;
use switchyard_runtime::kinds::{NodeSettings, Services};
use switchyard_runtime::{Engine, Handlers, Submission, WorkerPool, WorkerSettings};
use switchyard_store::SystemClock;
use switchyard_store_memory::MemoryStore;

use crate::support::{program, tester};

struct Small {
    engine: Engine,
    pool: WorkerPool,
}

async fn open(folder: &std::path::Path, pages_max: Option<u32>) -> Small {
    let options = ArchiveOptions { pages_max, ..ArchiveOptions::default() };
    let archive = Arc::new(SqliteArchive::open_custom(folder.join("switchyard.db"), options).unwrap());
    let clock = Arc::new(SystemClock);
    let hot = Arc::new(MemoryStore::new(archive.clone(), clock.clone(), Limits::default()));
    let cas = Arc::new(DataFolder::open(folder.join("payloads")).unwrap().cas());
    let engine = Engine::new(hot.clone(), archive.clone(), cas, clock.clone());
    engine.recover().await.unwrap();
    let (catalog, payloads) = (engine.catalog().clone(), engine.payloads().clone());
    let services =
        Services::new(NodeSettings::default(), Handlers::with_builtins(), catalog, archive, payloads, clock)
            .unwrap();
    let pool = WorkerPool::start(hot, Arc::new(services), &WorkerSettings::embedded(4));
    Small { engine, pool }
}

#[tokio::test]
async fn every_accepted_run_ends_once_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(
        "name: t\nnodes:\n  a: { type: transform, value: '${{ input.text }}' }\n  b: { type: transform, needs: [a], value: '${{ nodes.a.output }}' }\n",
    );
    let input = json!({"text": "x".repeat(3_000)});
    let small = open(folder.path(), Some(120)).await;
    let mut trouble = small.pool.trouble();
    let mut accepted = Vec::new();
    let refusal = loop {
        match small.engine.submit(&tester(), Submission::new(program.clone(), input.clone())).await {
            Ok(acceptance) => accepted.push(acceptance.run()),
            Err(refusal) => break refusal.to_string(),
        }
    };
    assert!(refusal.contains("full"), "{refusal}");
    trouble.wait_for(Option::is_some).await.unwrap();
    for run in &accepted {
        // Runs that had ended are found; waiting for the others fails.
        let _ = small.engine.wait_for_end(*run).await;
    }
    small.pool.shut_down(Duration::ZERO).await;
    drop(small.engine);

    let roomy = open(folder.path(), None).await;
    assert!(!accepted.is_empty());
    for run in accepted {
        roomy.engine.wait_for_end(run).await.unwrap();
        let record = roomy.engine.history().run(run).await.unwrap();
        assert_eq!(record.status, RunStatus::Succeeded);
    }
    roomy.pool.shut_down(Duration::ZERO).await;
}
