//! Patches: all five operations, dry run, audit, refusals, undo.

use serde_json::{Value, json};
use switchyard_core::RunId;
use switchyard_core::run::{NodeState, RunStatus};
use switchyard_runtime::{EngineError, PatchReport, PatchRequest, Principal, ids};

use crate::support::{RunViewExt, TestEngine, tester};

const GRAPH: &str = r#"
name: t
nodes:
  hold: { type: wait, signal: go }
  a: { type: transform, needs: [hold], value: a }
  b: { type: transform, needs: [a], value: b }
  c: { type: transform, needs: [a], value: c }
output: "${{ nodes.b.output }}"
"#;

async fn held() -> (TestEngine, RunId) {
    let fixture = TestEngine::working().await;
    let run = fixture.start(GRAPH, json!({})).await;
    fixture.until_waiting(run, "hold").await;
    (fixture, run)
}

fn request(run: RunId, ops: &Value) -> PatchRequest {
    PatchRequest {
        run,
        ops: serde_json::from_value(ops.clone()).unwrap(),
        seen: None,
        operation: ids::operation_id(),
        reason: "it knows better".into(),
        dry_run: false,
    }
}

async fn patch(fixture: &TestEngine, run: RunId, ops: Value) -> Result<PatchReport, EngineError> {
    fixture.engine().patch(&Principal::local("agent"), request(run, &ops)).await
}

#[tokio::test]
async fn every_operation_applies() {
    let (fixture, run) = held().await;
    let report = patch(
        &fixture,
        run,
        json!([
            {"op": "add_node", "id": "d", "node": {"type": "transform", "needs": ["a"], "value": "d"}},
            {"op": "update_node", "id": "b", "node": {"value": "better"}},
            {"op": "remove_node", "id": "c"},
            {"op": "add_edge", "from": "d", "to": "b"},
            {"op": "remove_edge", "from": "a", "to": "b"}
        ]),
    )
    .await
    .unwrap();
    assert_eq!(report.version, 2);
    let fixture = fixture.reopen().await;
    fixture.embedded.work();
    fixture.engine().signal(&tester(), run, &ids::operation_id(), "go", &json!(null)).await.unwrap();
    let view = fixture.end(run).await;
    assert_eq!((view.status(), view.output()), (RunStatus::Succeeded, json!("better")));
    assert!(view.nodes.0.iter().all(|(id, _)| **id != *"c"));
    let audit = &view.patches[0];
    assert_eq!((&*audit.author, &*audit.reason), ("agent", "it knows better"));
    assert!(audit.diff.iter().any(|line| line.contains("d")), "{:?}", audit.diff);
}

#[tokio::test]
async fn a_dry_run_says_what_would_happen_and_does_nothing() {
    let (fixture, run) = held().await;
    let ops = json!([{"op": "remove_node", "id": "c"}]);
    let report = fixture
        .engine()
        .patch(&Principal::local("agent"), PatchRequest { dry_run: true, ..request(run, &ops) })
        .await
        .unwrap();
    assert_eq!((report.patch, report.version), (None, 2));
    assert!(!report.diff.is_empty());
    let state = fixture.state(run).await;
    assert!(state.version == 1 && state.ir.find("c").is_some() && state.patches.is_empty());
}

#[tokio::test]
async fn what_a_patch_may_not_do_is_refused_whole() {
    let (fixture, run) = held().await;
    let before = fixture.view(run).await.last_seq;
    for (ops, expected) in [
        (
            json!([{"op": "remove_edge", "from": "hold", "to": "a"}, {"op": "remove_node", "id": "hold"}]),
            "has started",
        ),
        (
            json!([{"op": "remove_node", "id": "c"}, {"op": "update_node", "id": "hold", "node": {"signal": "x"}}]),
            "has started",
        ),
        (json!([{"op": "add_edge", "from": "b", "to": "a"}]), "→"),
        (json!([{"op": "add_edge", "from": "nowhere", "to": "a"}]), "nowhere"),
        (json!([{"op": "add_node", "id": "x", "node": {"type": "nonsense"}}]), "nonsense"),
        (json!([{"op": "remove_node", "id": "a"}]), "a"),
        (json!([]), "at least one operation"),
    ] {
        let refused = patch(&fixture, run, ops.clone()).await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{ops}: {refused}");
    }
    let stale = PatchRequest { seen: Some(9), ..request(run, &json!([{"op": "remove_node", "id": "c"}])) };
    let refused = fixture.engine().patch(&Principal::local("agent"), stale).await.unwrap_err().to_string();
    assert!(refused.contains("version 9") && refused.contains("version 1"), "{refused}");
    assert_eq!(fixture.view(run).await.last_seq, before, "nothing was changed");
}

#[tokio::test]
async fn a_patch_is_undone_while_nothing_of_it_has_started() {
    let (fixture, run) = held().await;
    let add = |id: &str| json!([{"op": "add_node", "id": id, "node": {"type": "wait", "signal": "later", "needs": ["hold"]}}]);
    let first = patch(&fixture, run, add("x")).await.unwrap().patch.unwrap();
    let second = patch(&fixture, run, add("y")).await.unwrap().patch.unwrap();
    let undone = fixture
        .engine()
        .undo_patch(&Principal::local("ada"), run, &first, ids::operation_id(), false)
        .await
        .unwrap();
    assert_eq!(undone.version, 4);
    let state = fixture.state(run).await;
    assert!(state.ir.find("x").is_none() && state.ir.find("y").is_some(), "later patches stay");
    let twice = fixture
        .engine()
        .undo_patch(&Principal::local("ada"), run, &first, ids::operation_id(), false)
        .await
        .unwrap_err();
    assert!(twice.to_string().contains("undone already"), "{twice}");

    fixture.engine().signal(&tester(), run, &ids::operation_id(), "go", &json!(null)).await.unwrap();
    fixture.until_waiting(run, "y").await;
    let late = fixture
        .engine()
        .undo_patch(&Principal::local("ada"), run, &second, ids::operation_id(), false)
        .await
        .unwrap_err();
    assert!(late.to_string().contains("`y` has started"), "{late}");
    fixture.engine().signal(&tester(), run, &ids::operation_id(), "later", &json!(null)).await.unwrap();
    assert_eq!(fixture.end(run).await.node("y"), NodeState::Succeeded);
}
