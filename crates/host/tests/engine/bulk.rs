//! Bulk jobs, and deleting runs.

use serde_json::json;
use switchyard_core::run::RunStatus;
use switchyard_core::{OperationId, RunId};
use switchyard_runtime::{EngineError, ids};
use switchyard_store::{BulkAction, BulkCounts, BulkOutcome, BulkStatus, RunFilter};

use crate::support::{RunViewExt, TestEngine, tester};

const GATE: &str =
    "name: gate\nlabels: { team: \"${{ input.team }}\" }\nnodes: { gate: { type: wait, signal: go } }";
const BROKEN: &str = r#"
name: broken
nodes:
  fetch: { type: function, function: fail, input: { code: down, message: no answer } }
"#;

fn filter(engine: &TestEngine, text: &str) -> RunFilter {
    RunFilter::parse(text, engine.engine().clock().now()).unwrap()
}

fn cancel() -> BulkAction {
    BulkAction::Cancel { reason: "enough".into(), compensate: true, now: true }
}

async fn work_off(engine: &TestEngine) {
    while engine.engine().work_bulk().await.unwrap() {}
}

async fn start(engine: &TestEngine, action: BulkAction, text: &str) -> String {
    let filter = filter(engine, text);
    let started = engine.engine().start_bulk(&tester(), &ids::operation_id(), action, &filter).await;
    started.unwrap().job.id.to_string()
}

#[tokio::test]
async fn a_job_survives_a_restart_and_acts_once_on_each_run() {
    let engine = TestEngine::idle(|_| {}).await;
    let mut runs: Vec<RunId> = Vec::new();
    // More runs than a page has.
    for _ in 0..60 {
        runs.push(engine.start(GATE, json!({"team": "ads"})).await);
    }
    let other = engine.start(GATE, json!({"team": "search"})).await;
    let filter = filter(&engine, "label=team=ads status=running,queued");
    let operation = OperationId::drawn(7);
    let job = engine.engine().start_bulk(&tester(), &operation, cancel(), &filter).await.unwrap();
    assert!(engine.engine().work_bulk().await.unwrap(), "a page is done, and there is more");
    let id = job.job.id.to_string();
    let half = engine.engine().history().bulk_job(&id).await.unwrap();
    assert_eq!(
        (half.job.status, half.counts),
        (BulkStatus::Running, BulkCounts { done: 50, skipped: 0, failed: 0 })
    );
    // The job does not touch runs that are created later.
    let later = engine.start(GATE, json!({"team": "ads"})).await;

    let engine = engine.reopen().await;
    work_off(&engine).await;
    let history = engine.engine().history();
    let done = history.bulk_job(&id).await.unwrap();
    assert_eq!(
        (done.job.status, done.counts),
        (BulkStatus::Done, BulkCounts { done: 60, skipped: 0, failed: 0 })
    );
    for run in runs {
        assert_eq!(engine.view(run).await.status(), RunStatus::Cancelled);
    }
    for run in [other, later] {
        assert_eq!(engine.view(run).await.status(), RunStatus::Running);
    }
    let repeated = engine.engine().start_bulk(&tester(), &operation, cancel(), &filter).await.unwrap();
    assert_eq!(repeated.job.id, done.job.id);
    assert_eq!(history.bulk_results(&id, None, 100).await.unwrap().len(), 60);
}

#[tokio::test]
async fn failed_runs_are_retried_forked_and_deleted_by_filter() {
    let engine = TestEngine::working().await;
    let run = engine.run(BROKEN, json!({})).await.run_id;
    let started = engine.engine().history().state(run, None).await.unwrap().attempt;
    let retry = start(&engine, BulkAction::Retry, "status=failed code=down").await;
    work_off(&engine).await;
    assert_eq!(engine.end(run).await.attempt, started + 1);
    let fork = start(&engine, BulkAction::Fork { from: None }, "node=fetch").await;
    work_off(&engine).await;
    let history = engine.engine().history();
    let results = history.bulk_results(&fork, None, 10).await.unwrap();
    let forked: RunId = results[0].detail.as_ref().unwrap().parse().unwrap();
    assert_eq!(engine.end(forked).await.forked_from, Some(run));

    let gate = engine.start(GATE, json!({"team": "ads"})).await;
    let all = filter(&engine, "created_after=1h");
    let preview = history.bulk_preview(&all).await.unwrap();
    assert_eq!((preview.count.runs, preview.sample.len()), (3, 3));
    let delete = start(&engine, BulkAction::Delete { reason: "cleaning".into() }, "created_after=1h").await;
    work_off(&engine).await;
    let outcomes = history.bulk_results(&delete, None, 10).await.unwrap();
    let of = |run: RunId| outcomes.iter().find(|result| result.run_id == run).unwrap().outcome;
    assert_eq!((of(run), of(forked), of(gate)), (BulkOutcome::Done, BulkOutcome::Done, BulkOutcome::Skipped));
    assert!(matches!(engine.engine().state(run).await, Err(EngineError::UnknownRun(_))));
    let tombstones = history.tombstones(10).await.unwrap();
    assert_eq!(tombstones.len(), 2);
    assert!(tombstones.iter().all(|stone| &*stone.reason == "cleaning" && &*stone.deleted_by == "tester"));
    assert_eq!(history.bulk_job(&retry).await.unwrap().counts.done, 1);
}

#[tokio::test]
async fn a_job_without_a_condition_is_refused_and_a_stopped_one_does_nothing_more() {
    let engine = TestEngine::idle(|_| {}).await;
    let run = engine.start(GATE, json!({"team": "ads"})).await;
    let everything = filter(&engine, "children=true");
    let refused = engine.engine().start_bulk(&tester(), &ids::operation_id(), cancel(), &everything).await;
    assert!(matches!(refused, Err(EngineError::BadRequest(_))));
    let id = start(&engine, cancel(), "status=running").await;
    let stopped = engine.engine().stop_bulk(&tester(), &ids::operation_id(), &id).await.unwrap();
    assert_eq!(stopped.job.status, BulkStatus::Stopped);
    work_off(&engine).await;
    assert_eq!(engine.view(run).await.status(), RunStatus::Running);
    let refused = engine.engine().delete_run(&tester(), run, &ids::operation_id(), "").await;
    assert!(matches!(refused, Err(EngineError::Refused(_))), "it has not ended");
}
