//! Sleep, signals, approvals, sub-runs, in whole workflows.

use std::time::Duration;

use serde_json::json;
use switchyard_core::run::{Decision, NodeState, RunStatus};
use switchyard_runtime::{Principal, ids};
use switchyard_store::{ApprovalFilter, ApprovalStatus};

use crate::support::{RunViewExt, TestEngine, tester};

#[tokio::test]
async fn a_sleep_lasts_as_long_as_it_says_even_across_a_restart() {
    let (fixture, clock) = TestEngine::with_clock().await;
    let text = "name: t\nnodes:\n  nap: { type: sleep, duration: 2h }\n  after: { type: transform, needs: [nap], value: up }\n";
    let run = fixture.start(text, json!({})).await;
    fixture.until_waiting(run, "nap").await;
    clock.advance(Duration::from_secs(7199));
    assert_eq!(fixture.view(run).await.node("nap"), NodeState::Waiting);
    clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.end(run).await.output(), json!("up"));
}

const APPROVAL: &str = r#"
name: t
nodes:
  ask: { type: hitl, approver: boss, prompt: "ship ${{ input.what }}?", input: "${{ input }}", timeout: 1h, on_timeout: reject }
  ship: { type: transform, needs: [ask], value: "${{ nodes.ask.output.comment }}" }
"#;

#[tokio::test]
async fn a_person_approves_with_a_comment() {
    let fixture = TestEngine::working().await;
    let run = fixture.start(APPROVAL, json!({"what": "it"})).await;
    fixture.until_waiting(run, "ask").await;
    let fixture = fixture.reopen().await;
    fixture.embedded.work();
    let pending = ApprovalFilter { run: None, status: Some(ApprovalStatus::Pending) };
    let approvals = fixture.engine().history().approvals(&pending).await.unwrap();
    assert_eq!(approvals[0].prompt.as_deref(), Some("ship it?"));
    let id = &approvals[0].approval;
    assert_eq!(
        fixture
            .engine()
            .decide(&Principal::local("boss"), id, &ids::operation_id(), Decision::Approved, "go ahead")
            .await
            .unwrap(),
        run
    );
    assert_eq!(fixture.end(run).await.output(), json!("go ahead"));
    let again = fixture
        .engine()
        .decide(&Principal::local("boss"), id, &ids::operation_id(), Decision::Rejected, "")
        .await
        .unwrap_err();
    assert_eq!(again.to_string(), "the approval was decided already, or its run no longer waits for it");
}

#[tokio::test]
async fn nobody_decides_in_time() {
    let (fixture, clock) = TestEngine::with_clock().await;
    let run = fixture.start(APPROVAL, json!({"what": "it"})).await;
    fixture.until_waiting(run, "ask").await;
    clock.advance(Duration::from_secs(3600));
    let view = fixture.end(run).await;
    assert_eq!((view.status(), view.error_code()), (RunStatus::Failed, "rejected".into()));
}

#[tokio::test]
async fn a_workflow_that_takes_too_long_takes_its_runs_along() {
    let (fixture, clock) = TestEngine::with_clock().await;
    let text = "name: t\nnodes:\n  sub:\n    type: workflow\n    timeout: 1m\n    nodes: { nap: { type: sleep, duration: 1h } }\n";
    let run = fixture.start(text, json!({})).await;
    fixture.until_waiting(run, "sub").await;
    clock.advance(Duration::from_secs(60));
    let view = fixture.end(run).await;
    assert_eq!((view.status(), view.error_code()), (RunStatus::Failed, "timeout".into()));
    assert_eq!(fixture.engine().size().await.unwrap().runs, 0, "the child was cancelled");
}

#[tokio::test]
async fn a_map_survives_a_restart_in_its_middle() {
    let fixture = TestEngine::working().await;
    let text = r#"
name: t
nodes:
  each:
    type: map
    items: "${{ input.list }}"
    concurrency: 2
    input: { n: "${{ item }}" }
    nodes:
      hold: { type: wait, signal: go }
      double: { type: transform, needs: [hold], value: "${{ input.n * 2 }}" }
"#;
    let run = fixture.start(text, json!({"list": [1, 2, 3]})).await;
    fixture.until_waiting(run, "each").await;
    let mut fixture = fixture.reopen().await;
    fixture.embedded.work();
    // The third starts when one of the first two has ended.
    for _ in 0..3 {
        let state = fixture.state(run).await;
        let each = state.ir.find("each").unwrap();
        let Some(switchyard_core::run::Waiting::Children(children)) = state.node(each).wait.as_deref() else {
            panic!("{:?}", state.node(each))
        };
        let next = children.specs.get(children.ended).unwrap().run;
        fixture.engine().signal(&tester(), next, &ids::operation_id(), "go", &json!(null)).await.unwrap();
        fixture.end(next).await;
        fixture = fixture.reopen().await;
        fixture.embedded.work();
    }
    assert_eq!(fixture.end(run).await.output(), json!([2, 4, 6]));
}
