//! The worker protocol.

use std::time::Duration;

use serde_json::{Value, json};
use switchyard_client::documents::Beat;
use switchyard_client::{ClaimTasks, Client, Submission, TaskFailure};

use crate::harness::{TestServer, double};

fn want(wait: Duration) -> ClaimTasks {
    let (functions, types) = (vec!["double".to_owned()], Vec::new());
    let (lease, version) = (Duration::from_secs(30), String::new());
    ClaimTasks { worker: "w".into(), functions, types, slots: 10, wait, lease, busy: 0, version }
}

async fn claim_one(client: &Client) -> switchyard_client::documents::HeldTask {
    let mut tasks = client.claim(&want(Duration::from_secs(30))).await.unwrap();
    assert_eq!(tasks.len(), 1);
    tasks.remove(0)
}

#[tokio::test]
async fn a_task_is_claimed_kept_and_completed() {
    let server = TestServer::start().await;
    let client = server.client();
    assert!(client.claim(&want(Duration::ZERO)).await.unwrap().is_empty());
    let submission = Submission::definition(double(), json!(21));
    let (task, run) = tokio::join!(claim_one(&client), client.submit(&submission));
    let run = run.unwrap().run_id;
    let claim = task.claim_ref();
    assert_eq!(
        (task.run_id, &*task.function, &task.input, task.checkpoint),
        (run, "double", &json!(21), Value::Null)
    );
    assert_eq!(client.heartbeat(&claim, Duration::from_secs(60)).await.unwrap(), Beat::Held);
    assert_eq!(client.checkpoint(&claim, &json!({"at": 3})).await.unwrap(), Beat::Held);
    assert_eq!(client.chunks(&claim, &[json!("4"), json!("2")]).await.unwrap(), Beat::Held);
    client.release(&claim).await.unwrap();
    let again = claim_one(&client).await;
    assert_eq!((again.attempt, &again.checkpoint), (1, &json!({"at": 3})));
    client.complete(&again.claim_ref(), &json!(42)).await.unwrap();
    client.complete(&again.claim_ref(), &json!(43)).await.unwrap();
    let mut chunks = Vec::new();
    let mut events = client.follow(run, 0);
    while let Some(event) = events.next().await.unwrap() {
        chunks.extend(event.chunks().to_vec());
    }
    assert_eq!(chunks, [json!("4"), json!("2")]);
    assert_eq!(client.run(run).await.unwrap().output.get(), "42", "the first settlement counts");
    let late = client.heartbeat(&claim, Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(late.code(), Some("lease_expired"));
}

#[tokio::test]
async fn a_failed_call_fails_the_node() {
    let server = TestServer::start().await;
    let client = server.client();
    let run = client.submit(&Submission::definition(double(), json!(1))).await.unwrap().run_id;
    let task = claim_one(&client).await;
    let failure = TaskFailure { code: "no".into(), message: "not today".into(), retryable: false };
    client.fail(&task.claim_ref(), &failure).await.unwrap();
    let mut events = client.follow(run, 0);
    while events.next().await.unwrap().is_some() {}
    let view = client.run(run).await.unwrap();
    assert_eq!(&*view.error.unwrap().code, "no");
}
