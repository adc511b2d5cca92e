//! Retention removes runs that ended long ago, with their payloads. Runs in flight stay whole.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchyard_core::{RunId, Timestamp};
use switchyard_runtime::{EngineError, LogFilter, Retained, Submission, ids};
use switchyard_store::{ManualClock, RetentionPolicy};

use crate::support::{RunViewExt, TestEngine, program, tester};

const DAY: Duration = Duration::from_secs(24 * 3600);

const ECHO: &str = "name: echo\nnodes:\n  a: { type: transform, value: '${{ input.text }}' }\n";
const WAIT: &str = "name: wait\nnodes:\n  w: { type: wait, signal: go }
  a: { type: transform, needs: [w], value: '${{ input.text }}' }\n";
const EACH: &str = "name: each\nnodes:\n  m: { type: map, items: '${{ input.texts }}',
    nodes: { a: { type: transform, value: '${{ input }}' } } }\n";

/// Too large for an event, and different for every letter.
fn large(letter: char) -> String {
    letter.to_string().repeat(10_000)
}

fn keep(for_: Duration) -> RetentionPolicy {
    RetentionPolicy { keep_for: Some(for_), keep_runs: None, payload_grace: Duration::ZERO }
}

fn payloads(fixture: &TestEngine) -> usize {
    let shelves = std::fs::read_dir(fixture.folder.path().join("cas")).unwrap();
    shelves.map(|shelf| std::fs::read_dir(shelf.unwrap().path()).unwrap().count()).sum()
}

async fn is_gone(fixture: &TestEngine, run: RunId) -> bool {
    matches!(fixture.engine().state(run).await, Err(EngineError::UnknownRun(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_go_with_their_payloads_and_live_ones_keep_theirs() {
    let (fixture, clock) = TestEngine::with_clock().await;
    let old = fixture.run(ECHO, json!({"text": large('a')})).await.run_id;
    let live = fixture.start(WAIT, json!({"text": large('b')})).await;
    fixture.until_waiting(live, "w").await;
    clock.advance(2 * DAY);
    let young = fixture.run(ECHO, json!({"text": large('c')})).await.run_id;
    let before = payloads(&fixture);

    let policy = keep(DAY);
    let gone = fixture.engine().retain(&policy).await.unwrap();
    assert_eq!(gone.runs, 1);
    assert!(gone.payloads >= 1);
    assert_eq!(payloads(&fixture), before - gone.payloads);
    assert!(is_gone(&fixture, old).await);
    assert!(!is_gone(&fixture, young).await);
    assert_eq!(fixture.engine().retain(&policy).await.unwrap(), Retained::default(), "nothing is left to do");

    fixture.engine().signal(&tester(), live, &ids::operation_id(), "go", &json!(null)).await.unwrap();
    assert_eq!(fixture.end(live).await.output(), json!(large('b')));
}

#[tokio::test(flavor = "multi_thread")]
async fn children_go_with_their_parent_and_shared_payloads_stay() {
    let (fixture, clock) = TestEngine::with_clock().await;
    let texts = json!({"texts": [large('a'), large('b')]});
    let parent = fixture.run(EACH, texts).await;
    assert_eq!(parent.output(), json!([large('a'), large('b')]));
    clock.advance(DAY);
    let other = fixture.run(ECHO, json!({"text": large('a')})).await.run_id;
    assert_eq!(fixture.engine().retain(&keep(DAY)).await.unwrap().runs, 1);
    assert!(is_gone(&fixture, parent.run_id).await);
    let all = switchyard_store::RunFilter { include_children: true, limit: 10, ..Default::default() };
    let left = fixture.engine().history().runs(&all).await.unwrap().items;
    assert_eq!(left.iter().map(|run| run.run_id).collect::<Vec<_>>(), [other]);
    assert_eq!(fixture.view(other).await.output(), json!(large('a')));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_just_put_stays_until_its_grace_is_over() {
    let (fixture, clock) = TestEngine::with_clock().await;
    // Simulates an unfinished submission: the payload is stored, the run is not.
    fixture.engine().payloads().keep(&json!(large('x'))).await.unwrap();
    fixture.run(ECHO, json!({"text": large('a')})).await;
    clock.advance(2 * DAY);
    let before = payloads(&fixture);
    let gone = fixture.engine().retain(&RetentionPolicy { payload_grace: DAY, ..keep(DAY) }).await.unwrap();
    assert_eq!(gone, Retained { runs: 1, payloads: 0 });
    assert_eq!(payloads(&fixture), before);
    assert_eq!(fixture.engine().retain(&keep(DAY)).await.unwrap().payloads, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_free_again_when_its_run_is_gone() {
    let (fixture, clock) = TestEngine::with_clock().await;
    let submit = async || {
        let submission = Submission {
            idempotency_key: Some("order-17".into()),
            ..Submission::new(program(ECHO), json!({"text": "a"}))
        };
        fixture.engine().submit(&tester(), submission).await.unwrap().run()
    };
    let first = submit().await;
    fixture.end(first).await;
    assert_eq!(submit().await, first);
    clock.advance(DAY);
    fixture.engine().retain(&keep(DAY)).await.unwrap();
    let second = submit().await;
    assert_ne!(second, first);
    fixture.end(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_go_with_their_run() {
    let clock = ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let fixture = TestEngine::with(|options| {
        options.clock = Arc::new(clock.clone());
        options.nodes.allow_commands = true;
    })
    .await;
    let text =
        "name: loud\nnodes:\n  a: { type: command, command: [sh, -c, 'yes loud | head -n 1500 >&2'] }\n";
    let run = fixture.run(text, json!(null)).await.run_id;
    let page = fixture.engine().history().logs(run, 0, &LogFilter::default(), 10_000).await.unwrap();
    assert_eq!(page.logs.iter().map(|logged| logged.lines.len()).sum::<usize>(), 1_500);
    assert!(payloads(&fixture) > 0, "lines that are many are payloads");
    clock.advance(2 * DAY);
    let gone = fixture.engine().retain(&keep(DAY)).await.unwrap();
    assert_eq!((gone.runs, payloads(&fixture)), (1, 0));
    let none = fixture.engine().history().logs(run, 0, &LogFilter::default(), 10).await;
    assert!(matches!(none, Err(EngineError::UnknownRun(_))));
}
