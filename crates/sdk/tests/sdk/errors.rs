//! Errors of handlers, and their effects on runs.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use switchyard_sdk::testing::{TestRun, TestSwitchyard};
use switchyard_sdk::{HandlerError, NodeState, RunFailure};

const TRY: &str = r#"
name: t
nodes:
  try: { type: function, function: try, retry: { max_attempts: 3, initial: 10m, backoff: fixed, jitter: false } }
"#;

async fn tried(answer: fn() -> Result<Value, HandlerError>) -> (TestRun, RunFailure) {
    let switchyard = TestSwitchyard::new().handler("try", move |_: (), _| async move { answer() });
    let run = switchyard.start(TRY, ()).await.unwrap();
    let failure = run.run_to_end::<Value>().await.unwrap().output().unwrap_err();
    (run, failure)
}

#[tokio::test]
async fn a_retryable_error_uses_every_attempt_at_its_moment() {
    let (run, failure) = tried(|| Err(HandlerError::retryable("busy", "not now"))).await;
    assert_eq!((failure.code(), failure.error.attempt), ("busy", Some(3)));
    let seen = run.look().await.unwrap();
    seen.assert_attempts("try", 3).assert_error("try", "busy");
    let took = seen.view().ended_at.unwrap().since(seen.view().accepted_at);
    assert_eq!(took, Duration::from_secs(2 * 600));
}

#[tokio::test]
async fn a_permanent_error_is_not_tried_again() {
    let (run, failure) = tried(|| Err(HandlerError::permanent("no_card", "there is no card"))).await;
    assert!(failure.to_string().ends_with("failed: node `try`, attempt 1: there is no card (no_card)"));
    run.look().await.unwrap().assert_attempts("try", 1).assert_node("try", NodeState::Failed);
}

#[tokio::test]
async fn any_other_error_is_retryable_and_tells_its_causes() {
    let (run, failure) = tried(|| Ok(serde_json::from_str::<Value>("{")?)).await;
    assert_eq!((failure.code(), failure.error.attempt), ("handler_error", Some(3)));
    run.look().await.unwrap().assert_attempts("try", 3);

    let (_, failure) = tried(|| Ok("x".parse::<u8>().context("the number of the house")?.into())).await;
    assert_eq!(&*failure.error.message, "the number of the house: invalid digit found in string");
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_attempt_and_nothing_else() {
    let switchyard = TestSwitchyard::new().handler("try", |_: (), cx| async move {
        assert!(cx.attempt() > 1, "out of paper");
        Ok(cx.attempt())
    });
    let run = switchyard.start(TRY, ()).await.unwrap();
    run.look().await.unwrap().assert_node("try", NodeState::Waiting).assert_error("try", "panic");
    assert_eq!(run.run_to_end::<u32>().await.unwrap().output(), Ok(2));
}

#[tokio::test]
async fn a_function_that_nobody_registered_is_named_with_those_that_are_there() {
    let run = TestSwitchyard::new().handler("tri", |_: (), _| async { Ok(()) }).start(TRY, ()).await.unwrap();
    let failure = run.run_to_end::<Value>().await.unwrap().output().unwrap_err();
    assert_eq!(failure.code(), "unknown_function");
    assert!(failure.error.message.contains("tri"), "{failure}");
}
