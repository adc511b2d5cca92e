//! Start, show, list, cancel, pause, resume, retry, fork, replay; idempotency, concurrency, deadlines.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use switchyard_core::in_flight::Acceptance;
use switchyard_core::run::{Concurrency, EventKind, NodeState, Refusal, RunStatus};
use switchyard_core::{NodeError, RunId};
use switchyard_runtime::{EngineError, Fork, Handlers, Principal, Submission, ids};
use switchyard_store::RunFilter;

use crate::support::{RunViewExt, TestEngine, program, tester};

const SAGA: &str = r#"
name: saga
nodes:
  reserve:
    type: function
    function: echo
    input: { seat: 7 }
    compensate: { type: function, function: undo, input: "${{ nodes.reserve.output.seat }}" }
  charge:
    type: function
    function: pay
    needs: [reserve]
    retry: { max_attempts: 3, backoff: fixed, initial: 1ms, jitter: false }
  ship: { type: function, function: echo, needs: [charge], input: { sent: true } }
"#;

/// A `pay` handler that fails `failures` times, and an `undo` handler that records its inputs.
fn handlers(failures: u32) -> (Handlers, Arc<std::sync::Mutex<Vec<serde_json::Value>>>) {
    let (left, undone) = (Arc::new(AtomicU32::new(failures)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let mut handlers = Handlers::with_builtins();
    handlers.register_fn("pay", move |_, _| {
        let fails = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        async move {
            if fails { Err(NodeError::retryable("declined", "no money").into()) } else { Ok(json!("paid")) }
        }
    });
    let notes = undone.clone();
    handlers.register_fn("undo", move |input, _| {
        notes.lock().unwrap().push(input);
        async { Ok(json!(null)) }
    });
    (handlers, undone)
}

#[tokio::test]
async fn a_failure_that_passes_is_retried() {
    let (handlers, undone) = handlers(2);
    let fixture = TestEngine::with_handlers(handlers).await;
    let view = fixture.run(SAGA, json!({})).await;
    assert_eq!((view.status(), view.output()), (RunStatus::Succeeded, json!({"sent": true})));
    assert_eq!(view.attempts("charge"), 3);
    assert!(undone.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_failure_that_stays_is_compensated_and_can_be_retried() {
    let (handlers, undone) = handlers(3);
    let fixture = TestEngine::with_handlers(handlers).await;
    let failed = fixture.run(SAGA, json!({})).await;
    assert_eq!(failed.status(), RunStatus::Failed);
    let error = failed.error.as_ref().unwrap();
    assert_eq!(error.to_string(), "node `charge`, attempt 3: no money (declined)");
    assert_eq!(failed.node("ship"), NodeState::Cancelled);
    assert_eq!(*undone.lock().unwrap(), [json!(7)]);

    fixture.engine().retry(&tester(), failed.run_id, &ids::operation_id()).await.unwrap();
    let retried = fixture.end(failed.run_id).await;
    assert_eq!((retried.status(), retried.attempt), (RunStatus::Succeeded, 2));
    assert_eq!(retried.attempts("reserve"), 1, "what was undone is done again");
    let again = fixture.engine().retry(&tester(), failed.run_id, &ids::operation_id()).await;
    assert!(matches!(again, Err(EngineError::Refused(Refusal::WrongStatus { .. }))), "{again:?}");
}

#[tokio::test]
async fn a_fork_keeps_what_came_before() {
    let (handlers, _) = handlers(100);
    let fixture = TestEngine::with_handlers(handlers).await;
    let failed = fixture.run(SAGA, json!({})).await;
    let edits = serde_json::from_value(json!([
        {"op": "update_node", "id": "charge", "node": {"function": "echo", "input": "by hand"}}
    ]))
    .unwrap();
    let operation = ids::operation_id();
    let fork = Fork { run: failed.run_id, operation, from: "charge".into(), input: None, edits };
    let forked = fixture.engine().fork(&tester(), fork).await.unwrap();
    assert_eq!(forked.kept.iter().map(|node| &**node).collect::<Vec<_>>(), ["reserve"]);
    let view = fixture.end(forked.run).await;
    assert_eq!(view.status(), RunStatus::Succeeded);
    assert_eq!(view.node_output("charge"), json!("by hand"));
    assert_eq!(view.node_output("reserve"), json!({"seat": 7}));
    assert_eq!(view.forked_from, Some(failed.run_id));
    assert_eq!(fixture.view(failed.run_id).await.status(), RunStatus::Failed, "the origin is as it was");
}

#[tokio::test]
async fn history_can_be_replayed_to_any_point() {
    let (handlers, _) = handlers(1);
    let fixture = TestEngine::with_handlers(handlers).await;
    let view = fixture.run(SAGA, json!({})).await;
    let history = fixture.engine().history();
    let events = history.events(view.run_id, 0, None).await.unwrap();
    let retrying = events.iter().find(|e| matches!(e.kind, EventKind::NodeRetrying { .. })).unwrap();
    let then = history.state(view.run_id, Some(retrying.seq)).await.unwrap();
    assert_eq!(then.status(), RunStatus::Running);
    let charge = then.ir.find("charge").unwrap();
    assert_eq!(then.node(charge).state, NodeState::Waiting);
    for at in 1..=view.last_seq {
        assert_eq!(history.state(view.run_id, Some(at)).await.unwrap().seq, at);
    }
    assert!(history.state(view.run_id, Some(view.last_seq + 1)).await.is_err());
}

const WAITING: &str = "name: waiting\nnodes:\n  hold: { type: wait, signal: go }\n  after: { type: function, function: echo, needs: [hold], input: '${{ nodes.hold.output }}' }\n";

#[tokio::test]
async fn a_run_is_cancelled() {
    let fixture = TestEngine::working().await;
    let run = fixture.start(WAITING, json!({})).await;
    fixture.until_waiting(run, "hold").await;
    fixture
        .engine()
        .cancel(&Principal::local("ada"), run, &ids::operation_id(), "changed my mind", true, false)
        .await
        .unwrap();
    let view = fixture.end(run).await;
    assert_eq!(view.status(), RunStatus::Cancelled);
    assert_eq!(view.error.unwrap().to_string(), "cancelled by ada: changed my mind (cancelled)");
    let again = fixture
        .engine()
        .cancel(&Principal::local("ada"), run, &ids::operation_id(), "", true, false)
        .await
        .unwrap_err();
    assert_eq!(again.to_string(), "a run that is cancelled cannot be cancelled");
}

#[tokio::test]
async fn a_handler_that_runs_is_stopped_by_a_cancel() {
    let (began, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let mut handlers = Handlers::with_builtins();
    handlers.register_fn("forever", move |_, _| {
        let began = began.clone();
        async move {
            began.send(()).unwrap();
            std::future::pending().await
        }
    });
    let fixture = TestEngine::with_handlers(handlers).await;
    let run = fixture.start("name: t\nnodes:\n  a: { type: function, function: forever }\n", json!({})).await;
    begun.recv().await.unwrap();
    fixture
        .engine()
        .cancel(&Principal::local("ada"), run, &ids::operation_id(), "", true, false)
        .await
        .unwrap();
    let view = fixture.end(run).await;
    assert_eq!((view.status(), view.node("a")), (RunStatus::Cancelled, NodeState::Cancelled));
}

#[tokio::test]
async fn a_paused_run_stands_still_until_it_is_resumed() {
    let fixture = TestEngine::working().await;
    let run = fixture.start(WAITING, json!({})).await;
    fixture.until_waiting(run, "hold").await;
    fixture.engine().pause(&Principal::local("ada"), run, &ids::operation_id()).await.unwrap();
    fixture.engine().signal(&tester(), run, &ids::operation_id(), "go", &json!(1)).await.unwrap();
    assert_eq!(fixture.view(run).await.node("after"), NodeState::Ready);
    // A restart does not start the run either.
    let fixture = fixture.reopen().await;
    fixture.embedded.work();
    let other =
        fixture.run("name: other\nnodes:\n  a: { type: function, function: noop }\n", json!({})).await;
    assert_eq!(other.status(), RunStatus::Succeeded);
    assert_eq!(fixture.view(run).await.status(), RunStatus::Paused);
    fixture.engine().resume(&Principal::local("ada"), run, &ids::operation_id()).await.unwrap();
    assert_eq!(fixture.end(run).await.output(), json!(1));
}

#[tokio::test]
async fn one_idempotency_key_is_one_run_even_after_it_ended() {
    let fixture = TestEngine::working().await;
    let submission = |input| Submission {
        idempotency_key: Some("order-7".into()),
        ..Submission::new(program("name: t\nnodes:\n  a: { type: function, function: noop }\n"), input)
    };
    let first = fixture.engine().submit(&tester(), submission(json!({"n": 1}))).await.unwrap();
    let by = tester();
    let racing = futures_all(10, |_| fixture.engine().submit(&by, submission(json!({"n": 1})))).await;
    assert!(racing.iter().all(|answer| answer.as_ref().unwrap().run() == first.run()));
    fixture.end(first.run()).await;
    let fixture = fixture.reopen().await;
    let later = fixture.engine().submit(&tester(), submission(json!({"n": 1}))).await.unwrap();
    assert_eq!(later, Acceptance::Existing(first.run()));
    let misuse = fixture.engine().submit(&tester(), submission(json!({"n": 2}))).await.unwrap_err();
    assert!(matches!(misuse, EngineError::Refused(Refusal::KeyReused { .. })), "{misuse}");
}

async fn futures_all<T, F: Future<Output = T>>(count: usize, make: impl Fn(usize) -> F) -> Vec<T> {
    let mut all = Vec::new();
    for future in (0..count).map(make).collect::<Vec<_>>() {
        all.push(future.await);
    }
    all
}

#[tokio::test]
async fn a_concurrency_key_is_kept_across_a_restart() {
    let fixture = TestEngine::working().await;
    let submit = || Submission {
        concurrency: Some(Concurrency { key: "tenant".into(), limit: 1 }),
        ..Submission::new(program(WAITING), json!({}))
    };
    let first = fixture.engine().submit(&tester(), submit()).await.unwrap().run();
    let second = fixture.engine().submit(&tester(), submit()).await.unwrap().run();
    fixture.until_waiting(first, "hold").await;
    let fixture = fixture.reopen().await;
    fixture.embedded.work();
    assert_eq!(fixture.view(second).await.status(), RunStatus::Queued);
    fixture.engine().signal(&tester(), first, &ids::operation_id(), "go", &json!(1)).await.unwrap();
    fixture.engine().signal(&tester(), second, &ids::operation_id(), "go", &json!(2)).await.unwrap();
    assert_eq!(fixture.end(first).await.output(), json!(1));
    assert_eq!(fixture.end(second).await.output(), json!(2));
}

#[tokio::test]
async fn a_deadline_ends_a_run() {
    let (fixture, clock) = TestEngine::with_clock().await;
    let submission = Submission {
        deadline: Some(Duration::from_secs(60)),
        ..Submission::new(program(WAITING), json!({}))
    };
    let run = fixture.engine().submit(&tester(), submission).await.unwrap().run();
    fixture.until_waiting(run, "hold").await;
    clock.advance(Duration::from_secs(60));
    let view = fixture.end(run).await;
    assert_eq!((view.status(), view.error_code()), (RunStatus::Failed, "deadline_exceeded".into()));
}

#[tokio::test]
async fn runs_are_listed_newest_first_in_pages() {
    let fixture = TestEngine::working().await;
    let text = "name: t\nnodes:\n  a: { type: function, function: noop }\n";
    for _ in 0..5 {
        fixture.run(text, json!({})).await;
    }
    let history = fixture.engine().history();
    let first = history.runs(&RunFilter { limit: 3, ..RunFilter::default() }).await.unwrap();
    let rest =
        history.runs(&RunFilter { limit: 3, cursor: first.next, ..RunFilter::default() }).await.unwrap();
    let ids: Vec<_> = first.items.iter().chain(&rest.items).map(|run| run.run_id).collect();
    assert_eq!(ids.len(), 5);
    assert!(ids.is_sorted_by(|a, b| a > b), "{ids:?}");
    assert!(rest.next.is_none());
}

/// Which runs each attempt at the node `n` has started.
async fn started_per_attempt(fixture: &TestEngine, run: RunId) -> Vec<Vec<RunId>> {
    let mut attempts: Vec<Vec<RunId>> = Vec::new();
    let mut last = 0;
    for event in fixture.engine().history().events(run, 0, None).await.unwrap() {
        match event.kind {
            EventKind::NodeStarted { node, attempt, .. } if &*node == "n" && attempt > last => {
                last = attempt;
                attempts.push(Vec::new());
            }
            EventKind::ChildStarted { run, .. } => attempts.last_mut().unwrap().push(run),
            _ => {}
        }
    }
    attempts
}

#[tokio::test]
async fn nodes_with_runs_of_their_own_are_retried_with_new_runs() {
    let fixture = TestEngine::working().await;
    let step = "{ type: function, function: fail, input: { until_attempt: '${{ input.go ? 1 : 2 }}' } }";
    let retry = "retry: { max_attempts: 3, initial: 10ms }, input: { go: '${{ run.attempt == 3 }}' }";
    for (kind, runs) in [
        ("type: workflow", [1, 1, 1]),
        ("type: map, items: [1, 2], on_item_error: fail, concurrency: 1", [1, 1, 2]),
        ("type: loop, until: iteration == 2", [1, 1, 2]),
    ] {
        let text = format!("name: t\nnodes:\n  n: {{ {kind}, {retry}, nodes: {{ s: {step} }} }}\n");
        let view = fixture.run(&text, json!({})).await;
        assert_eq!(
            (view.status(), view.attempts("n")),
            (RunStatus::Succeeded, 3),
            "{kind}: {:?}",
            view.error
        );
        let attempts = started_per_attempt(&fixture, view.run_id).await;
        assert_eq!(attempts.iter().map(Vec::len).collect::<Vec<_>>(), runs, "{kind}");
        let all: HashSet<RunId> = attempts.iter().flatten().copied().collect();
        assert_eq!(all.len(), runs.iter().sum::<usize>(), "no run is used twice: {kind}");
    }
    let final_code = format!(
        "name: t\nnodes:\n  n: {{ type: workflow, retry: {{ max_attempts: 3, initial: 10ms, non_retryable: [workflow_failed] }}, input: {{ go: false }}, nodes: {{ s: {step} }} }}\n"
    );
    let view = fixture.run(&final_code, json!({})).await;
    assert_eq!((view.error_code().as_str(), view.attempts("n")), ("workflow_failed", 1));
}

#[tokio::test]
async fn results_are_remembered_while_their_cache_lasts() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let mut handlers = Handlers::with_builtins();
    handlers.register_fn("count", move |input, _| {
        let n = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(json!([input, n])) }
    });
    let text = "name: t\nnodes:\n  a: { type: function, function: count, input: '${{ input.x }}', cache: { ttl: 1h } }\n";
    let fixture = TestEngine::with_handlers(handlers.clone()).await;
    let first = fixture.run(text, json!({"x": 1})).await;
    assert_eq!((first.output(), first.is_cached("a")), (json!([1, 1]), false));
    let second = fixture.run(text, json!({"x": 1, "other": 2})).await;
    assert_eq!((second.output(), second.is_cached("a")), (json!([1, 1]), true), "remembered");
    let events = fixture.engine().history().events(second.run_id, 0, None).await.unwrap();
    let marked = |kind: &EventKind| matches!(kind, EventKind::NodeSucceeded { cached: true, .. });
    assert_eq!(events.iter().filter(|event| marked(&event.kind)).count(), 1, "the event says so too");
    assert_eq!(fixture.run(text, json!({"x": 2})).await.output(), json!([2, 2]), "another input");
    let transform =
        "name: t\nnodes:\n  a: { type: transform, value: '${{ input.x }}', cache: { ttl: 1h } }\n";
    assert_eq!(fixture.run(transform, json!({"x": 1})).await.output(), json!(1));
    assert_eq!(fixture.run(transform, json!({"x": 2})).await.output(), json!(2), "the key is all it acts on");
}
