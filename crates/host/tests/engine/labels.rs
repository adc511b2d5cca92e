//! Labels, and runs found by them.

use serde_json::json;
use switchyard_core::RunId;
use switchyard_core::run::RunStatus;
use switchyard_runtime::{EngineError, Submission};
use switchyard_store::RunFilter;

use crate::support::{RunViewExt, TestEngine, program, tester};

const FAMILY: &str = r#"
name: family
labels: { team: search, customer: "${{ input.customer }}", tier: 1 }
inherit_labels: true
nodes:
  each:
    type: map
    items: "${{ input.items }}"
    nodes:
      one:
        type: function
        function: fail
        when: input == 2
        input: { code: broken, message: two is too many }
"#;

async fn found(engine: &TestEngine, text: &str) -> Vec<RunId> {
    let now = engine.engine().clock().now();
    let filter = RunFilter { limit: 100, ..RunFilter::parse(text, now).unwrap() };
    engine.engine().history().runs(&filter).await.unwrap().items.iter().map(|run| run.run_id).collect()
}

#[tokio::test]
async fn labels_of_the_submission_win_and_children_inherit_them() {
    let engine = TestEngine::working().await;
    let submission = Submission {
        labels: [("team".into(), "ads".into())].into(),
        ..Submission::new(program(FAMILY), json!({"customer": "acme", "items": [1, 3]}))
    };
    let run = engine.engine().submit(&tester(), submission).await.unwrap().run();
    let view = engine.end(run).await;
    assert_eq!(view.status(), RunStatus::Succeeded);
    let labels: Vec<(&str, &str)> = view.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(labels, [("customer", "acme"), ("team", "ads"), ("tier", "1")]);
    assert_eq!(found(&engine, "label=team=ads label=customer=acme").await, [run]);
    let children = found(&engine, &format!("parent={run} label=team=ads")).await;
    assert_eq!(children.len(), 2);
    let node = &view.nodes.0[0].1;
    assert_eq!(node.children.iter().rev().map(|child| child.run_id).collect::<Vec<_>>(), children);
    let child = engine.view(children[0]).await;
    assert_eq!((child.parent, child.parent_node.as_deref()), (Some(run), Some("each")));
    assert_eq!(child.labels, view.labels);
}

#[tokio::test]
async fn the_error_of_a_map_names_the_run_of_the_item() {
    let engine = TestEngine::working().await;
    let view = engine.run(FAMILY, json!({"customer": "acme", "items": [2]})).await;
    assert_eq!(view.error_code(), "item_failed");
    let child = found(&engine, &format!("parent={} code=broken", view.run_id)).await[0];
    let message = view.error.unwrap().message;
    assert!(
        message.starts_with(&format!("item 1 of 1: {child}: node `one`, attempt 1: two is too")),
        "{message}"
    );
    assert_eq!(found(&engine, "node=each code=item_failed").await, [view.run_id]);
    assert_eq!(found(&engine, "error=\"TOO many\" created_after=1h children=true").await.len(), 2);
}

#[tokio::test]
async fn labels_that_cannot_be_are_refused_and_nothing_is_started() {
    let engine = TestEngine::working().await;
    let submit =
        async |input| engine.engine().submit(&tester(), Submission::new(program(FAMILY), input)).await;
    let empty = submit(json!({"customer": "", "items": []})).await;
    assert!(
        matches!(&empty, Err(EngineError::BadRequest(why)) if why.contains("`customer` is empty")),
        "{empty:?}"
    );
    let missing = submit(json!({"items": []})).await;
    assert!(
        matches!(&missing, Err(EngineError::BadRequest(why)) if why.contains("label `customer`")),
        "{missing:?}"
    );
    let unbounded = RunFilter { error: Some("x".into()), limit: 1, ..RunFilter::default() };
    let unbounded = engine.engine().history().runs(&unbounded).await;
    assert!(matches!(unbounded, Err(EngineError::BadRequest(_))));
    assert!(found(&engine, "").await.is_empty());
}
