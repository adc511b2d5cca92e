//! The workflows in `examples/` run. The test answers those that wait for a person.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use switchyard_core::run::{Decision, RunStatus};
use switchyard_lang::Program;
use switchyard_runtime::{Principal, Submission, ids};
use switchyard_store::{ApprovalFilter, ApprovalStatus};

use crate::support::{RunViewExt, TestEngine, tester};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn example(name: &str) -> Arc<Program> {
    let path = folder().join(name);
    let text = std::fs::read(&path).unwrap();
    let program = Program::compile_bundled(name, &text, &folder(), &|path| std::fs::read(path));
    Arc::new(program.unwrap_or_else(|problems| panic!("{problems}")))
}

async fn succeeds(fixture: &TestEngine, name: &str, input: Value) -> Value {
    let run = fixture.engine().submit(&tester(), Submission::new(example(name), input)).await.unwrap().run();
    let view = fixture.end(run).await;
    assert_eq!(view.status(), RunStatus::Succeeded, "{name}: {:?}", view.error);
    view.output()
}

#[tokio::test]
async fn every_example_compiles() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".yaml") && !name.ends_with("-ops.yaml") {
            example(&name);
        }
    }
}

#[tokio::test]
async fn examples_that_need_nobody_succeed() {
    let fixture = TestEngine::with(|options| options.nodes.allow_commands = true).await;
    let greeting = succeeds(&fixture, "hello.yaml", json!({"name": "Ada"})).await;
    assert_eq!(greeting, json!({"greeting": "Hello, Ada!"}));
    for name in [
        "fan-out.yaml",
        "conditions.yaml",
        "retry.yaml",
        "map.yaml",
        "loop.yaml",
        "subworkflow.yaml",
        "command.yaml",
    ] {
        succeeds(&fixture, name, default_input(name)).await;
    }
}

/// The input in the header of an example: `--input '…'`.
fn default_input(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    let header = text.lines().take_while(|line| line.starts_with('#')).collect::<Vec<_>>().join("\n");
    match header.split_once("--input '") {
        Some((_, rest)) => serde_json::from_str(rest.split_once('\'').unwrap().0).unwrap(),
        None => json!({}),
    }
}

#[tokio::test]
async fn the_saga_fails_and_is_undone() {
    let fixture = TestEngine::working().await;
    let run = fixture
        .engine()
        .submit(&tester(), Submission::new(example("compensation.yaml"), json!({})))
        .await
        .unwrap()
        .run();
    let view = fixture.end(run).await;
    assert_eq!(view.status(), RunStatus::Failed);
    let undone = view.nodes.0.iter().filter(|(id, _)| id.ends_with("/compensate")).count();
    assert!(undone > 0, "nothing was undone: {view:#?}");
}

#[tokio::test]
async fn the_approval_is_approved() {
    let fixture = TestEngine::working().await;
    let submission = Submission::new(example("approval.yaml"), json!({"amount": 500}));
    let run = fixture.engine().submit(&tester(), submission).await.unwrap().run();
    fixture.until(run, |kind| kind.name() == "node_waiting").await;
    let pending = ApprovalFilter { run: Some(run), status: Some(ApprovalStatus::Pending) };
    let approvals = fixture.engine().history().approvals(&pending).await.unwrap();
    fixture
        .engine()
        .decide(
            &Principal::local("boss"),
            &approvals[0].approval,
            &ids::operation_id(),
            Decision::Approved,
            "",
        )
        .await
        .unwrap();
    assert_eq!(fixture.end(run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn the_patch_is_applied_while_the_run_waits() {
    let fixture = TestEngine::working().await;
    let name = "patch.yaml";
    let run = fixture
        .engine()
        .submit(&tester(), Submission::new(example(name), default_input(name)))
        .await
        .unwrap()
        .run();
    fixture.until(run, |kind| kind.name() == "node_waiting").await;
    let text = std::fs::read(folder().join("patch-ops.yaml")).unwrap();
    let ops = switchyard_lang::parse_value("patch-ops.yaml", &text).unwrap();
    let ops = ops.get("ops").cloned().unwrap_or(ops);
    let request = switchyard_runtime::PatchRequest {
        run,
        ops: serde_json::from_value(ops).unwrap(),
        seen: None,
        operation: ids::operation_id(),
        reason: "".into(),
        dry_run: false,
    };
    fixture.engine().patch(&Principal::local("ada"), request).await.unwrap();
    assert_eq!(fixture.state(run).await.version, 2);
}
