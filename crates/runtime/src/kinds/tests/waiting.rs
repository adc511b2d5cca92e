use std::time::Duration;

use serde_json::json;
use switchyard_core::run::{ApprovalTimeout, SignalTimeout, WaitFor};
use switchyard_core::{Payload, Timestamp};

use super::{Bench, NOW, parts};

#[tokio::test]
async fn sleeps_are_timers() {
    let bench = Bench::new();
    for (node, until) in [
        (json!({"type": "sleep", "duration": "90s"}), NOW.plus(Duration::from_secs(90))),
        (json!({"type": "sleep", "duration": "${{ input }}"}), NOW.plus(Duration::from_millis(1_500))),
        (json!({"type": "sleep", "until": "1970-01-01T00:00:01Z"}), Timestamp::from_millis(1_000)),
    ] {
        assert_eq!(bench.waits_for(node, json!(1.5)).await, WaitFor::Timer { until });
    }
    let error = bench.error(json!({"type": "sleep", "duration": "${{ input }}"}), json!("soon")).await;
    assert_eq!((&*error.code, error.retryable), ("expression", false), "{error}");
}

#[tokio::test]
async fn a_wait_names_its_signal() {
    let bench = Bench::new();
    let node =
        json!({"type": "wait", "signal": "paid-${{ input }}", "timeout": "1h", "on_timeout": "continue"});
    let expected = WaitFor::Signal {
        name: "paid-7".into(),
        timeout_at: Some(NOW.plus(Duration::from_secs(3600))),
        on_timeout: SignalTimeout::Continue,
    };
    assert_eq!(bench.waits_for(node, json!(7)).await, expected);
    let expected = WaitFor::Signal { name: "x".into(), timeout_at: None, on_timeout: SignalTimeout::Fail };
    assert_eq!(bench.waits_for(json!({"type": "wait", "signal": "x"}), json!(7)).await, expected);
    let error = bench.error(json!({"type": "wait", "signal": "${{ input }}"}), json!("x".repeat(257))).await;
    let message = "`signal` has 257 bytes, more than the 256 it may have";
    assert_eq!(parts(&error), ("too_long", false, message));
}

#[tokio::test]
async fn an_approval_shows_its_input() {
    let node = json!({
        "type": "hitl", "approver": "${{ input.who }}", "prompt": "Pay ${{ input.sum }}?",
        "input": {"sum": "${{ input.sum }}"}, "timeout": "2h", "on_timeout": "approve",
    });
    let WaitFor::Approval(request) = Bench::new().waits_for(node, json!({"who": "me", "sum": 5})).await
    else {
        panic!("no approval");
    };
    assert!(request.approval.as_str().starts_with("appr_"), "{}", request.approval);
    assert_eq!(request.approver.as_deref(), Some("me"));
    assert_eq!(request.prompt.as_deref(), Some("Pay 5?"));
    assert_eq!(request.payload, Payload::from_value(&json!({"sum": 5})));
    assert_eq!(request.timeout_at, Some(NOW.plus(Duration::from_secs(7200))));
    assert_eq!(request.on_timeout, ApprovalTimeout::Approve);
}

#[tokio::test]
async fn an_approval_can_be_bare_and_its_input_large() {
    let bench = Bench::new();
    let WaitFor::Approval(request) = bench.waits_for(json!({"type": "hitl"}), json!(null)).await else {
        panic!("no approval");
    };
    assert_eq!((request.approver, request.prompt, request.timeout_at), (None, None, None));
    assert_eq!((request.payload, request.on_timeout), (Payload::null(), ApprovalTimeout::Reject));

    let large = json!("x".repeat(100_000));
    let node = json!({"type": "hitl", "input": "${{ input }}"});
    let WaitFor::Approval(request) = bench.waits_for(node, large.clone()).await else {
        panic!("no approval")
    };
    assert!(matches!(request.payload, Payload::Cas(_)));
    assert_eq!(bench.services.payloads.load(&request.payload).await.unwrap(), large);
}
