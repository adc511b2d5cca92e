use serde_json::{Value, json};
use switchyard_core::NodeError;

use super::{Bench, parts, run};

fn function(name: &str, input: Value) -> Value {
    json!({"type": "function", "function": name, "input": input})
}

#[tokio::test]
async fn builtins() {
    let bench = Bench::new();
    assert_eq!(bench.output(function("echo", json!({"a": "${{ input }}"})), json!(1)).await, json!({"a": 1}));
    assert_eq!(bench.output(function("noop", json!(1)), json!(null)).await, json!(null));
    let error = bench.error(function("fail", json!(null)), json!(null)).await;
    assert_eq!(parts(&error), ("failed", true, "failed, as it was asked to"));
    let how = json!({"message": "m", "code": "c", "retryable": false});
    assert_eq!(parts(&bench.error(function("fail", how), json!(null)).await), ("c", false, "m"));
    let error = bench.error(function("fail", json!([1, {"message": 2}])), json!(null)).await;
    assert_eq!(&*error.code, "failed");
}

#[tokio::test]
async fn fail_can_succeed_later() {
    let bench = Bench::new();
    let node = function("fail", json!({"until_attempt": 3}));
    assert!(bench.execute_task(node.clone(), json!(null), |task| task.attempt = 2).await.is_err());
    let third = bench.execute_task(node, json!(null), |task| task.attempt = 3).await;
    assert_eq!(third.unwrap().output(), json!({"attempt": 3}));
}

#[tokio::test]
async fn a_registered_function_gets_its_input_and_knows_its_call() {
    let mut bench = Bench::new();
    bench.services.handlers.register_fn("mine", async |input: Value, context: crate::HandlerContext| {
        Ok(json!([input, context.attempt, *context.node, context.idempotency_key]))
    });
    let output = bench.execute_task(function("mine", json!("x")), json!(null), |task| task.attempt = 4).await;
    assert_eq!(output.unwrap().output(), json!(["x", 4, "n", format!("{}/n", run())]));
}

#[tokio::test]
async fn errors_of_a_function_are_handed_on() {
    let mut bench = Bench::new();
    bench.services.handlers.register_fn("mine", |_, _| async { Err(NodeError::permanent("c", "m").into()) });
    assert_eq!(parts(&bench.error(function("mine", json!(1)), json!(null)).await), ("c", false, "m"));
}

#[tokio::test]
async fn an_unknown_function_is_told_what_there_is() {
    let error = Bench::new().error(function("ehco", json!(1)), json!(null)).await;
    let message = "no function `ehco` is registered with this worker; it has echo, fail, noop";
    assert_eq!(parts(&error), ("unknown_function", false, message));
}

#[tokio::test]
async fn transform_gives_its_value_or_its_input() {
    let bench = Bench::new();
    let value = json!({"type": "transform", "value": {"n": "${{ input.a + 1 }}"}, "input": 1});
    assert_eq!(bench.output(value, json!({"a": 1})).await, json!({"n": 2}));
    assert_eq!(bench.output(json!({"type": "transform", "input": [1]}), json!(null)).await, json!([1]));
    assert_eq!(bench.output(json!({"type": "transform"}), json!(null)).await, json!(null));
}

#[tokio::test]
async fn an_expression_that_fails_says_which() {
    let error = Bench::new().error(json!({"type": "transform", "value": "${{ input.a }}"}), json!({})).await;
    assert_eq!((&*error.code, error.retryable), ("expression", false));
    assert!(error.message.starts_with("`input.a`: "), "{error}");
}
