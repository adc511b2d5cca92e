//! Time limits are state: they hold no matter which API the worker calls, and also if it calls none.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn limited(more: &Value) -> Value {
    let mut node = json!({ "type": "function", "function": "double", "input": { "n": "${{ input.n }}" } });
    for (name, value) in more.as_object().unwrap() {
        node[name] = value.clone();
    }
    json!({ "name": "limited", "nodes": { "double": node } })
}

impl Fixture {
    /// Claims the only task; waits until there is one.
    async fn claim_at(&self, address: &str) -> Value {
        let body = json!({ "worker": "w", "types": ["function"], "lease": "60s", "wait": "60s" });
        let answer = self.post_at(address, "/v1/tasks/claim", &body).await;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.json::<Value>().await.unwrap()["tasks"][0].clone()
    }

    async fn failed_with(&self, run: &str, code: &str) {
        let view = self.until(run, |view| view["ended_at"].is_string()).await;
        assert_eq!((&view["status"], &view["error"]["code"]), (&json!("failed"), &json!(code)), "{view:#}");
    }
}

fn about(task: &Value) -> Value {
    json!({ "run_id": task["run_id"], "node": task["node"], "claim": task["claim"] })
}

#[tokio::test]
async fn an_attempt_is_held_to_its_limit_by_whichever_process_is_there() {
    let mut fixture = Fixture::start();
    let (one, other) = (fixture.address().to_owned(), fixture.start_another_api());
    let workflow = limited(&json!({ "timeout": "2s" }));

    // The worker sends all heartbeats to the API that did not hand the task out.
    let run = fixture.submitted_with(&workflow, &json!({ "n": 1 })).await;
    let task = fixture.claim_at(&one).await;
    assert_eq!(task["timeout"], "2s");
    let refused = loop {
        let answer = fixture.post_at(&other, "/v1/tasks/heartbeat", &about(&task)).await;
        if answer.status() != StatusCode::OK {
            break answer;
        }
    };
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "task_timed_out");
    fixture.failed_with(&run, "timeout").await;

    // The worker sends nothing after the claim.
    let run = fixture.submitted_with(&workflow, &json!({ "n": 2 })).await;
    fixture.claim_at(&one).await;
    fixture.failed_with(&run, "timeout").await;

    // The API that handed the task out has stopped.
    let run = fixture.submitted_with(&workflow, &json!({ "n": 3 })).await;
    fixture.claim_at(&other).await;
    fixture.stop_last();
    fixture.failed_with(&run, "timeout").await;
    fixture.assert_all_run();
}

#[tokio::test]
async fn a_result_is_remembered_whichever_process_hears_of_it() {
    let mut fixture = Fixture::start();
    let (one, other) = (fixture.address().to_owned(), fixture.start_another_api());
    let workflow = limited(&json!({ "cache": { "ttl": "1h" } }));
    let run = fixture.submitted_with(&workflow, &json!({ "n": 21 })).await;
    let task = fixture.claim_at(&one).await;
    let mut done = about(&task);
    done["output"] = json!(42);
    assert_eq!(fixture.post_at(&other, "/v1/tasks/complete", &done).await.status(), StatusCode::OK);
    fixture.until(&run, |view| view["status"] == "succeeded").await;

    let again = fixture.submitted_with(&workflow, &json!({ "n": 21 })).await;
    let body = json!({ "worker": "w", "types": ["function"], "wait": "0s" });
    let view = loop {
        // The next claim finds the result of the task, and returns no task.
        let claimed: Value = fixture.post_at(&one, "/v1/tasks/claim", &body).await.json().await.unwrap();
        assert_eq!(claimed["tasks"], json!([]));
        let view: Value = fixture.get(&format!("/v1/runs/{again}")).await.json().await.unwrap();
        if view["ended_at"].is_string() {
            break view;
        }
    };
    assert_eq!((&view["status"], &view["output"]), (&json!("succeeded"), &json!(42)));
}

#[tokio::test]
async fn a_worker_that_does_not_stop_is_not_waited_for() {
    let fixture = Fixture::with(&[("SWITCHYARD_RUNS_STOP_GRACE", "1s")]);
    let one = fixture.address().to_owned();
    let run = fixture.submitted_with(&limited(&json!({})), &json!({ "n": 1 })).await;
    let task = fixture.claim_at(&one).await;
    let answer = fixture.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["status"], "closing");
    fixture.until(&run, |view| view["status"] == "cancelled").await;
    let late = fixture.post("/v1/tasks/complete", &about(&task)).await;
    assert_eq!(late.status(), StatusCode::CONFLICT);

    let fixture = Fixture::with(&[("SWITCHYARD_RUNS_STOP_GRACE", "1h")]);
    let run = fixture.submitted_with(&limited(&json!({})), &json!({ "n": 1 })).await;
    let task = fixture.claim_at(fixture.address()).await;
    let answer = fixture.post(&format!("/v1/runs/{run}/cancel"), &json!({ "now": true })).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["status"], "cancelled");
    let late = fixture.post("/v1/tasks/complete", &about(&task)).await;
    assert_eq!(late.status(), StatusCode::CONFLICT);
}
