//! Makes every call of the client once, against a real server.

use std::time::Duration;

use serde_json::json;
use switchyard_client::{Fork, Patch, PatchOp, RunsQuery, Submission};
use switchyard_core::run::{Decision, RunStatus};

use crate::harness::{TestServer, gate, hello};

#[tokio::test]
async fn runs_are_submitted_listed_and_shown() {
    let server = TestServer::start().await;
    let client = server.client();
    let record = client.register_workflow(&hello()).await.unwrap();
    assert_eq!((&*record.name, record.version), ("hello", 1));
    assert_eq!(client.workflows().await.unwrap(), std::slice::from_ref(&record));
    assert_eq!(client.workflow("hello", None).await.unwrap().record, record);
    let once = Submission::named("hello", json!({"name": "Ada"})).idempotency_key("k").version(1);
    let once = once.deadline(Duration::from_secs(60)).parallelism(std::num::NonZeroU32::MIN);
    let run = client.submit(&once).await.unwrap().run_id;
    assert_eq!(client.submit(&once).await.unwrap().run_id, run, "the same key is the same run");
    while client.follow(run, 0).next().await.unwrap().is_some_and(|event| !event.is_end()) {
        if client.run(run).await.unwrap().status.is_terminal() {
            break;
        }
    }
    let view = client.run(run).await.unwrap();
    assert_eq!((view.output.get(), &*view.nodes.0[0].0), ("\"Hello, Ada!\"", "greet"));
    assert_eq!(client.run_at(run, 1).await.unwrap().status, RunStatus::Running);
    let all = RunsQuery { workflow: Some("hello".into()), limit: Some(5), ..RunsQuery::default() };
    let page = client.runs(&all).await.unwrap();
    assert_eq!((page.runs.len(), page.runs[0].run_id), (1, run));
    let failed = RunsQuery { status: Some(RunStatus::Failed), ..RunsQuery::default() };
    assert!(client.runs(&failed).await.unwrap().runs.is_empty());
    assert!(client.server().await.unwrap().store.unwrap().starts_with("yard_"));
}

#[tokio::test]
async fn the_course_of_a_run_is_changed() {
    let server = TestServer::start().await;
    let client = server.client();
    let run = client.submit(&Submission::definition(gate(), json!(null))).await.unwrap().run_id;
    assert_eq!(client.pause(run, "ada").await.unwrap().status, RunStatus::Paused);
    assert_eq!(client.resume(run, "ada").await.unwrap().status, RunStatus::Running);
    let after: PatchOp = serde_json::from_value(
        json!({"op": "add_node", "id": "after", "node": {"type": "transform", "needs": ["gate"], "value": 2}}),
    )
    .unwrap();
    let patch = Patch { ops: vec![after], by: Some("ada".into()), ..Patch::default() };
    let report = client.patch(run, &patch).await.unwrap();
    assert_eq!(report.version, 2);
    let listed = client.patches(run).await.unwrap();
    assert_eq!(
        (&listed[0].patch, &listed[0].ops[0]["id"]),
        (report.patch.as_ref().unwrap(), &json!("after"))
    );
    let undone = client.undo_patch(run, &listed[0].patch, "ada", true).await.unwrap();
    assert_eq!((undone.patch, undone.version), (None, 3), "a dry run");
    assert!(client.cancel(run, "ada", "enough", true, false).await.unwrap().run_id == run);
    assert_eq!(client.run(run).await.unwrap().status, RunStatus::Cancelled);
    assert_eq!(client.retry(run, "ada").await.unwrap().status, RunStatus::Running);
    let forked = client.fork(run, &Fork { from: "gate".into(), input: None, edits: vec![] }).await.unwrap();
    assert_ne!(forked.run.run_id, run);
}

#[tokio::test]
async fn approvals_are_decided() {
    let server = TestServer::start().await;
    let client = server.client();
    let ask = json!({"name": "ask", "nodes": {"ask": {"type": "hitl", "prompt": "go?", "input": {"n": 1}}}});
    let run = client.submit(&Submission::definition(ask, json!(null))).await.unwrap().run_id;
    let mut events = client.follow(run, 0);
    while events.next().await.unwrap().is_some_and(|event| &*event.kind != "node_waiting") {}
    let pending = client.approvals(Some(run), false).await.unwrap();
    assert_eq!((pending.len(), pending[0].prompt.as_deref()), (1, Some("go?")));
    assert_eq!(client.approval(&pending[0].approval).await.unwrap().payload, Some(json!({"n": 1})));
    assert_eq!(pending[0].payload, None, "a list carries no payloads");
    client.decide(&pending[0].approval, Decision::Approved, "ada", "yes").await.unwrap();
    while events.next().await.unwrap().is_some() {}
    assert_eq!(client.run(run).await.unwrap().status, RunStatus::Succeeded);
    assert!(client.approvals(None, false).await.unwrap().is_empty());
    assert_eq!(client.approvals(None, true).await.unwrap()[0].decided_by.as_deref(), Some("ada"));
}

#[tokio::test]
async fn queues_are_counted_and_dead_letters_seen_to() {
    let server = TestServer::start().await;
    let client = server.client();
    let input = json!({"code": "poisoned", "message": "it kills"});
    let nodes = json!({"broken": {"type": "function", "function": "fail", "input": input}});
    let poison = Submission::definition(json!({"name": "poison", "nodes": nodes}), json!(null));
    let run = client.submit(&poison).await.unwrap().run_id;
    let mut events = client.follow(run, 0);
    while events.next().await.unwrap().is_some_and(|event| !event.is_end()) {}
    assert_eq!(client.queues().await.unwrap().dead_letters, 1);
    let letters = client.dead_letters(10).await.unwrap();
    let id = letters[0].letter.id.clone();
    assert_eq!((letters.len(), letters[0].letter.run_id), (1, Some(run)));
    assert_eq!(client.dead_letter(&id).await.unwrap().deliveries.unwrap().len(), 1);
    assert_eq!(client.purge_dead_letters(Some(Duration::from_secs(3600))).await.unwrap(), 0);
    let before = client.run(run).await.unwrap().last_seq;
    assert_eq!(client.redrive(&id, "ada").await.unwrap().run.unwrap().run_id, run);
    assert!(client.remove_dead_letter(&id).await.is_err(), "it is none any more");
    let mut events = client.follow(run, before);
    while events.next().await.unwrap().is_some_and(|event| !event.is_end()) {}
    assert_eq!(client.purge_dead_letters(None).await.unwrap(), 1);
}
