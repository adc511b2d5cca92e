//! Repeated submissions whose first one was accepted by release 0.1.

use serde_json::json;
use switchyard_archive_sqlite::DataFolder;
use switchyard_core::Hash;
use switchyard_core::in_flight::Limits;
use switchyard_store::{Archive, ManualClock};
use switchyard_store_memory::MemoryStore;
use tempfile::TempDir;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn engine(folder: &TempDir) -> Engine {
    let data = DataFolder::open(folder.path()).unwrap();
    let clock = Arc::new(ManualClock::starting_at(NOW));
    let archive: Arc<dyn Archive> = Arc::new(data.archive().unwrap());
    let hot = Arc::new(MemoryStore::new(archive.clone(), clock.clone(), Limits::default()));
    Engine::new(hot, archive, Arc::new(data.cas()), clock)
}

fn program() -> Arc<Program> {
    let text = "name: t\nnodes:\n  a: { type: function, function: noop }\n";
    Arc::new(Program::compile_text("t.yaml", text.as_bytes()).unwrap())
}

/// A run that release 0.1 accepted under this key, with the input `{"n":1}`.
async fn accepted_by_0_1(engine: &Engine, key: &str) -> NewRun {
    let program = program();
    engine.catalog.add(program.clone()).await.unwrap();
    let body = Hash::of(format!("{}\n{{\"n\":1}}", program.hash).as_bytes());
    let accepted = Accepted {
        idempotency: Some(Idempotency { key: key.into(), body }),
        ..Accepted::plain("t".into(), program.hash, Payload::from_value(&json!({"n": 1})))
    };
    let run = NewRun { id: ids::run_id(NOW, 0), accepted };
    engine.hot.accept(run.clone()).await.unwrap();
    run
}

fn submission(key: &str, input: Value) -> Submission {
    Submission { idempotency_key: Some(key.into()), ..Submission::new(program(), input) }
}

#[tokio::test]
async fn a_submission_that_release_0_1_accepted_is_known_when_it_is_repeated() {
    let folder = TempDir::new().unwrap();
    let engine = engine(&folder);
    let first = accepted_by_0_1(&engine, "order-7").await.id;
    let repeated =
        engine.submit(&Principal::local("me"), submission("order-7", json!({"n": 1}))).await.unwrap();
    assert_eq!(repeated, Acceptance::Existing(first));
    let other =
        engine.submit(&Principal::local("me"), submission("order-7", json!({"n": 2}))).await.unwrap_err();
    assert!(matches!(other, EngineError::Refused(Refusal::KeyReused { run, .. }) if run == first), "{other}");
}

/// The repetition reads the archive before the first submission is there, and finds it in the hot store.
#[tokio::test]
async fn a_submission_that_release_0_1_accepts_meanwhile_is_known() {
    let folder = TempDir::new().unwrap();
    let engine = engine(&folder);
    let first = accepted_by_0_1(&engine, "order-7").await;
    for (input, same) in [(json!({"n": 1}), true), (json!({"n": 2}), false)] {
        let payload = Payload::from_value(&input);
        let naming = engine.naming(&submission("order-7", input), &payload, NOW);
        let accepted = Accepted { idempotency: naming.key.clone(), input: payload, ..first.accepted.clone() };
        let new = NewRun { id: naming.run, accepted };
        match engine.take_in(&naming, &new).await {
            Ok(known) => assert!(same && known == Acceptance::Existing(first.id), "{known:?}"),
            Err(EngineError::Refused(Refusal::KeyReused { run, .. })) => assert!(!same && run == first.id),
            Err(error) => panic!("{error}"),
        }
    }
}
