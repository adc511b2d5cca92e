//! Expressions that exceed their budget fail their node and delay nothing else.

use serde_json::json;
use switchyard_core::run::{EventKind, RunStatus};
use switchyard_runtime::{EngineError, Submission, ids};

use crate::support::{RunViewExt, TestEngine, program, tester};

const LOOPS: &str = "${{ lists.range(10000).all(x, lists.range(10000).all(y, x + y >= 0)) || true }}";

/// An expression that is stopped before it allocates.
const LISTS: &str = "${{ lists.range(1000000) + lists.range(1000000) + lists.range(1000000) == [] }}";

/// A `transform` node with `retry`, which shows which failures are final.
fn transform(value: &str) -> String {
    format!(
        "name: w\nnodes:\n  a: {{type: transform, value: \"{value}\", retry: {{max_attempts: 3, initial: 1ms}}}}"
    )
}

#[tokio::test]
async fn eight_kilobytes_of_input_do_not_take_all_memory() {
    let fixture = TestEngine::working().await;
    let value = format!("${{{{ input.s{} }}}}", ".replace('a', input.s)".repeat(9));
    let view = fixture.run(&transform(&value), json!({"s": "a".repeat(8_000)})).await;
    assert_eq!((view.status(), view.error_code()), (RunStatus::Failed, "expression_budget".to_owned()));
    assert_eq!(view.attempts("a"), 1, "bytes are the same every time");
}

#[tokio::test]
async fn every_field_with_expressions_has_the_budget() {
    let fixture = TestEngine::working().await;
    for node in [
        format!("{{type: transform, value: 1, when: \"{LISTS}\"}}"),
        format!("{{type: transform, value: 1, cache: {{key: \"{LISTS}\", ttl: 1h}}}}"),
        format!("{{type: function, function: noop, input: {{a: [\"{LISTS}\"]}}}}"),
        format!("{{type: http, request: {{url: \"http://127.0.0.1:9/{LISTS}\"}}}}"),
        format!("{{type: http, request: {{url: \"http://127.0.0.1:9/\", headers: {{x: \"{LISTS}\"}}}}}}"),
        format!("{{type: sleep, duration: \"{LISTS}\"}}"),
        format!("{{type: wait, signal: \"{LISTS}\"}}"),
        format!("{{type: hitl, prompt: \"{LISTS}\"}}"),
        format!(
            "{{type: map, items: \"{LISTS}\", definition: {{name: c, nodes: {{b: {{type: transform}}}}}}}}"
        ),
        format!(
            "{{type: map, items: [1], input: \"{LISTS}\", definition: {{name: c, nodes: {{b: {{type: transform}}}}}}}}"
        ),
        format!(
            "{{type: loop, until: \"{LISTS}\", definition: {{name: c, nodes: {{b: {{type: transform}}}}}}}}"
        ),
        format!(
            "{{type: workflow, input: \"{LISTS}\", definition: {{name: c, nodes: {{b: {{type: transform}}}}}}}}"
        ),
    ] {
        let view = fixture.run(&format!("name: w\nnodes:\n  a: {node}"), json!({})).await;
        assert_eq!(view.error_code(), "expression_budget", "{node}");
    }
}

#[tokio::test]
async fn a_concurrency_key_has_the_budget() {
    let fixture = TestEngine::idle(|_| {}).await;
    let text =
        format!("name: w\nconcurrency: {{key: \"{LISTS}\", limit: 1}}\nnodes: {{a: {{type: transform}}}}");
    let submission = Submission::new(program(&text), json!({}));
    let error = fixture.engine().submit(&tester(), submission).await.unwrap_err();
    assert!(matches!(&error, EngineError::ConcurrencyKey(why) if why.exceeded.is_some()), "{error}");
}

/// On a single thread, so that blocking it would block everything.
#[tokio::test(flavor = "current_thread")]
async fn the_thread_that_serves_goes_on_while_an_expression_is_evaluated() {
    let fixture = TestEngine::working().await;
    let heavy = fixture.start(&transform(LOOPS), json!({})).await;
    fixture.until(heavy, |kind| matches!(kind, EventKind::NodeStarted { .. })).await;
    // Other runs start and end while the first one still runs.
    let mut ended = 0;
    while fixture.state(heavy).await.status() == RunStatus::Running {
        let view =
            fixture.run("name: w\nnodes: {a: {type: transform, value: \"${{ 1 + 1 }}\"}}", json!({})).await;
        assert_eq!(view.output(), json!(2));
        ended += 1;
    }
    assert!(ended >= 2, "only {ended} runs ended meanwhile");
    assert_eq!(fixture.end(heavy).await.error_code(), "expression_budget");
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_is_cancelled_while_its_expression_is_evaluated() {
    let fixture = TestEngine::working().await;
    // Below the budget, so that only the cancellation can end it.
    let long = "${{ lists.range(10000).all(x, lists.range(150).all(y, x + y >= 0)) }}";
    let run = fixture.start(&transform(long), json!({})).await;
    fixture.until(run, |kind| matches!(kind, EventKind::NodeStarted { .. })).await;
    fixture.engine().cancel(&tester(), run, &ids::operation_id(), "enough", false, false).await.unwrap();
    assert_eq!(fixture.end(run).await.status(), RunStatus::Cancelled);
}
