//! Bad input gets a clear error, and nothing is lost or half-done.

use std::sync::Arc;

use serde_json::json;
use switchyard_core::run::{NodeState, RunStatus};
use switchyard_lang::Program;
use switchyard_runtime::{EngineError, Handlers, Principal, Submission, ids};

use crate::support::{RunViewExt, TestEngine, tester};

#[tokio::test]
async fn an_expression_that_fails_at_run_time_names_itself() {
    let fixture = TestEngine::working().await;
    let text = "name: t\nnodes:\n  a: { type: transform, value: '${{ input.items[3].price }}' }\n";
    let view = fixture.run(text, json!({"items": []})).await;
    assert_eq!((view.status(), view.error_code()), (RunStatus::Failed, "expression".into()));
    let message = view.error.unwrap().to_string();
    assert!(message.contains("input.items[3].price"), "{message}");
}

fn misbehaving() -> Handlers {
    let mut handlers = Handlers::with_builtins();
    handlers.register_fn("panics", |_, _| async { panic!("kaboom") });
    handlers.register_fn("hangs", |_, _| std::future::pending());
    handlers.register_fn("huge", |_, _| async { Ok(json!("x".repeat(50 * 1024 * 1024))) });
    handlers.register_fn("monstrous", |_, _| async { Ok(json!("x".repeat(65 * 1024 * 1024))) });
    handlers
}

#[tokio::test]
async fn handlers_that_misbehave_fail_their_node_and_nobody_else() {
    let fixture = TestEngine::with_handlers(misbehaving()).await;
    for (function, code) in [
        ("panics", "panic"),
        ("hangs", "timeout"),
        ("monstrous", "output_too_large"),
        ("unheard_of", "unknown_function"),
    ] {
        let text =
            format!("name: t\nnodes:\n  a: {{ type: function, function: {function}, timeout: 50ms }}\n");
        let view = fixture.run(&text, json!({})).await;
        assert_eq!((view.status(), view.error_code()), (RunStatus::Failed, code.into()), "{function}");
    }
    let text = "name: t\nnodes:\n  a: { type: function, function: noop }\n";
    assert_eq!(fixture.run(text, json!({})).await.status(), RunStatus::Succeeded, "the worker is well");
}

#[tokio::test]
async fn fifty_megabytes_pass_through_unseen() {
    let fixture = TestEngine::with_handlers(misbehaving()).await;
    let text = r#"
name: t
nodes:
  big: { type: function, function: huge }
  size: { type: transform, needs: [big], value: "${{ size(nodes.big.output) }}" }
"#;
    let view = fixture.run(text, json!({})).await;
    assert_eq!(view.output(), json!(50 * 1024 * 1024));
    let journal: u64 = std::fs::read_dir(fixture.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(std::fs::Metadata::is_file)
        .map(|file| file.len())
        .sum();
    assert!(journal < 1024 * 1024, "the journal holds a reference: {journal} bytes");
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_refused_before_anything_happens() {
    let fixture = TestEngine::working().await;
    let text = "name: t\ninput: { type: object, required: [company] }\nnodes:\n  a: { type: function, function: noop }\n";
    let program = Arc::new(Program::compile_text("t.yaml", text.as_bytes()).unwrap());
    let refused = fixture.engine().submit(&tester(), Submission::new(program, json!({}))).await.unwrap_err();
    assert!(
        matches!(refused, EngineError::Invalid(_)) && refused.to_string().contains("company"),
        "{refused}"
    );
    assert_eq!(fixture.engine().size().await.unwrap().runs, 0);
}

#[tokio::test]
async fn unknown_ids_are_said_to_be_unknown() {
    let fixture = TestEngine::working().await;
    let unknown = "run_00000000000000000000000000".parse().unwrap();
    for refused in [
        fixture.engine().pause(&Principal::local("x"), unknown, &ids::operation_id()).await.unwrap_err(),
        fixture.engine().retry(&Principal::local("x"), unknown, &ids::operation_id()).await.unwrap_err(),
        fixture.engine().history().state(unknown, None).await.unwrap_err(),
        fixture.engine().wait_for_end(unknown).await.unwrap_err(),
    ] {
        assert!(matches!(refused, EngineError::UnknownRun(_)), "{refused}");
    }
}

/// A chain and a fan of ten thousand nodes run to their ends.
#[tokio::test]
async fn large_graphs_run() {
    let fixture = TestEngine::working().await;
    const SIZE: usize = 10_000;
    let node = |needs: Vec<String>| json!({"type": "function", "function": "noop", "needs": needs});
    let chain: serde_json::Map<_, _> = (0..SIZE)
        .map(|i| (format!("n{i}"), node(i.checked_sub(1).map(|i| format!("n{i}")).into_iter().collect())))
        .collect();
    let mut fan: serde_json::Map<_, _> =
        (0..SIZE - 2).map(|i| (format!("n{i}"), node(vec!["first".into()]))).collect();
    fan.insert("first".into(), node(vec![]));
    fan.insert("last".into(), node((0..SIZE - 2).map(|i| format!("n{i}")).collect()));
    for nodes in [chain, fan] {
        let program = Program::compile_value(&json!({"name": "large", "nodes": nodes})).unwrap();
        let run = fixture
            .engine()
            .submit(&tester(), Submission::new(Arc::new(program), json!({})))
            .await
            .unwrap()
            .run();
        fixture.engine().wait_for_end(run).await.unwrap();
        let state = fixture.state(run).await;
        assert!(state.nodes.iter().all(|node| node.state == NodeState::Succeeded));
    }
}
