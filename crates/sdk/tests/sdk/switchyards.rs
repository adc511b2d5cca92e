//! A Switchyard and its folder: names, versions, keys, refused requests.

use serde_json::{Value, json};
use switchyard_sdk::testing::TestSwitchyard;
use switchyard_sdk::{Error, Program, SubmitOptions, Switchyard, Workflow};
use tempfile::TempDir;

const ONE: &str = "name: count\nnodes:\n  n: { type: transform, value: 1 }\n";
const TWO: &str = "name: count\nnodes:\n  n: { type: transform, value: 2 }\n";

async fn open() -> (Switchyard, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Switchyard::builder(folder.path()).open().await.unwrap(), folder)
}

#[tokio::test]
async fn registered_workflows_are_found_by_name_and_version() {
    let (switchyard, _folder) = open().await;
    assert_eq!(switchyard.register_workflow(ONE).await.unwrap().version, 1);
    assert_eq!(switchyard.register_workflow(TWO).await.unwrap().version, 2);
    assert_eq!(switchyard.register_workflow(TWO).await.unwrap().version, 2, "the same is no new version");
    assert_eq!(switchyard.run::<u8>(Workflow::named("count"), ()).await.unwrap().output(), Ok(2));
    assert_eq!(switchyard.run::<u8>(Workflow::named("count").version(1), ()).await.unwrap().output(), Ok(1));
    let unknown = switchyard.submit(Workflow::named("count").version(3), ()).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no workflow `count version 3`");
    switchyard.shut_down().await;
}

#[tokio::test]
async fn a_program_and_a_file_run_as_a_text_does() {
    let (switchyard, folder) = open().await;
    let program = std::sync::Arc::new(Program::compile_text("one", ONE.as_bytes()).unwrap());
    assert_eq!(switchyard.run::<u8>(program, ()).await.unwrap().output(), Ok(1));
    let path = folder.path().join("two.yaml");
    let missing = Workflow::from_file(&path).unwrap_err();
    assert_eq!(missing.to_string(), format!("cannot read {}", path.display()));
    std::fs::write(&path, TWO).unwrap();
    assert_eq!(switchyard.run::<u8>(Workflow::from_file(&path).unwrap(), ()).await.unwrap().output(), Ok(2));
    switchyard.shut_down().await;
}

#[tokio::test]
async fn a_mistake_in_a_workflow_is_shown_with_its_place() {
    let (switchyard, _folder) = open().await;
    let invalid = switchyard.submit("name: t\nnodes:\n  a: { type: slep }\n", ()).await.unwrap_err();
    assert!(matches!(invalid, Error::Workflow(_)));
    assert!(invalid.to_string().starts_with("workflow:3:14: "), "{invalid}");
    switchyard.shut_down().await;
}

#[tokio::test]
async fn one_key_is_one_run() {
    let (switchyard, _folder) = open().await;
    let keyed = || SubmitOptions::new().idempotency_key("once");
    let first = switchyard.submit_with(ONE, json!({"a": 1}), keyed()).await.unwrap();
    assert_eq!(switchyard.submit_with(ONE, json!({"a": 1}), keyed()).await.unwrap(), first);
    let other = switchyard.submit_with(ONE, json!({"a": 2}), keyed()).await.unwrap_err();
    assert!(matches!(other, Error::Engine(_)), "{other}");
    assert!(switchyard.wait::<Value>(first).await.unwrap().succeeded());
    switchyard.shut_down().await;
}

#[tokio::test]
async fn a_folder_is_for_one_yard_at_a_time() {
    let (switchyard, folder) = open().await;
    let refused = Switchyard::builder(folder.path()).open().await.unwrap_err();
    assert!(refused.to_string().contains("in use by process"), "{refused}");
    switchyard.shut_down().await;
    Switchyard::builder(folder.path()).open().await.unwrap().shut_down().await;
}

#[tokio::test]
async fn a_function_with_a_queue_of_its_own_is_executed_here_too() {
    let text = "name: t\nnodes:\n  n: { type: function, function: own, queue: gpu }\n";
    let run = TestSwitchyard::new().handler("own", |_: (), _| async { Ok(1) }).start(text, ()).await.unwrap();
    assert_eq!(run.run_to_end::<u8>().await.unwrap().output(), Ok(1));
}
