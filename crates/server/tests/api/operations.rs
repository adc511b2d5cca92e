//! `Idempotency-Key`: a repeated request takes effect once, and the server returns the outcome again.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use switchyard_store::OPERATIONS_KEPT;

use crate::harness::{Answer, TestServer, hello};

async fn sent(request: RequestBuilder, key: &str) -> Answer {
    Answer::of(request.header("idempotency-key", key).send().await.unwrap()).await
}

/// Sends a change with an idempotency key.
async fn change(server: &TestServer, key: &str, method: Method, path: &str, body: Value) -> Answer {
    sent(server.client.request(method, server.url(path)).json(&body), key).await
}

fn nightly() -> Value {
    json!({ "workflow": "hello", "cron": "0 1 * * *", "input": { "name": "Ada" } })
}

#[tokio::test]
async fn the_header_and_the_field_of_a_submission_are_one_thing() {
    let server = TestServer::start().await;
    let submit = |key: Option<&str>| {
        let mut body = json!({ "workflow": hello(), "input": { "name": "Ada" } });
        if let Some(key) = key {
            body["idempotency_key"] = key.into();
        }
        server.client.post(server.url("/v1/runs")).json(&body)
    };
    let first = sent(submit(None), "order 7").await.expect(202)["run_id"].clone();
    for again in [sent(submit(None), "order 7").await, sent(submit(Some("order 7")), "order 7").await] {
        assert_eq!(again.expect(200)["run_id"], first);
    }
    let field = Answer::of(submit(Some("order 7")).send().await.unwrap()).await;
    assert_eq!(field.expect(200)["run_id"], first);
    let problem = sent(submit(Some("order 8")), "order 7").await.problem(400, "two_idempotency_keys");
    assert!(problem["detail"].as_str().unwrap().contains("`order 7`"), "{problem}");
}

#[tokio::test]
async fn a_key_that_cannot_be_one_is_refused() {
    let server = TestServer::start().await;
    let pause = || server.client.post(server.url("/v1/schedules/nightly/pause"));
    for wrong in ["", "ä", &"x".repeat(201)] {
        sent(pause(), wrong).await.problem(400, "invalid_idempotency_key");
    }
    let twice = pause().header("idempotency-key", "a");
    sent(twice, "b").await.problem(400, "invalid_idempotency_key");
}

#[tokio::test]
async fn a_change_is_made_once_and_answers_the_same() {
    let server = TestServer::start().await;
    let put = Method::PUT;
    let first = change(&server, "1", Method::POST, "/v1/workflows", hello()).await.expect(200);
    let mut other = hello();
    other["nodes"]["more"] = json!({ "type": "transform", "value": 1 });
    server.post("/v1/workflows", other.clone()).await.expect(200);
    let again = change(&server, "1", Method::POST, "/v1/workflows", hello()).await.expect(200);
    assert_eq!((&again, &again["version"]), (&first, &json!(1)), "and no third version");

    let made = change(&server, "2", put.clone(), "/v1/schedules/nightly", nightly()).await.expect(200);
    server.delete("/v1/schedules/nightly").await.expect(204);
    let again = change(&server, "2", put.clone(), "/v1/schedules/nightly", nightly()).await.expect(200);
    assert_eq!(again, made);
    server.get("/v1/schedules/nightly").await.problem(404, "unknown_schedule");

    server.put("/v1/schedules/nightly", nightly()).await.expect(200);
    let paused =
        change(&server, "3", Method::POST, "/v1/schedules/nightly/pause", json!({})).await.expect(200);
    server.post("/v1/schedules/nightly/resume", json!({})).await.expect(200);
    let again =
        change(&server, "3", Method::POST, "/v1/schedules/nightly/pause", json!({})).await.expect(200);
    assert_eq!(again, paused);
    assert_eq!(server.get("/v1/schedules/nightly").await.expect(200)["paused"], false);

    let span = json!({ "from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z" });
    let backfill = "/v1/schedules/nightly/backfill";
    let started = change(&server, "4", Method::POST, backfill, span.clone()).await.expect(200);
    assert_eq!(started["runs"][0]["started"], true);
    assert_eq!(change(&server, "4", Method::POST, backfill, span).await.expect(200), started);

    for _ in 0..2 {
        change(&server, "5", Method::DELETE, "/v1/schedules/nightly", Value::Null).await.expect(204);
    }
    server.delete("/v1/schedules/nightly").await.problem(404, "unknown_schedule");
}

#[tokio::test]
async fn another_request_with_the_same_key_is_refused() {
    let server = TestServer::start().await;
    change(&server, "1", Method::POST, "/v1/workflows", hello()).await.expect(200);
    change(&server, "2", Method::PUT, "/v1/schedules/nightly", nightly()).await.expect(200);
    let mut later = nightly();
    later["cron"] = "0 2 * * *".into();
    for answer in [
        change(&server, "2", Method::PUT, "/v1/schedules/nightly", later).await,
        change(&server, "2", Method::PUT, "/v1/schedules/weekly", nightly()).await,
        change(&server, "2", Method::DELETE, "/v1/schedules/nightly", Value::Null).await,
        change(&server, "1", Method::POST, "/v1/keys", json!({ "name": "ada" })).await,
    ] {
        answer.problem(409, "idempotency_key_reused");
    }
    // The order of fields does not matter.
    let text = r#"{"input": {"name": "Ada"}, "cron": "0 1 * * *", "workflow": "hello"}"#;
    let request = server.client.put(server.url("/v1/schedules/nightly")).body(text);
    sent(request.header("content-type", "application/json"), "2").await.expect(200);
    assert_eq!(server.get("/v1/schedules/nightly").await.expect(200)["cron"], "0 1 * * *");
    server.get("/v1/runs").await.expect(200);
}

#[tokio::test]
async fn a_key_that_is_made_again_is_the_same_without_its_text() {
    let server = TestServer::start().await;
    let body = json!({ "name": "ada" });
    let made = change(&server, "1", Method::POST, "/v1/keys", body.clone()).await.expect(201);
    let request = server.client.post(server.url("/v1/keys")).json(&body);
    let again = sent(request.bearer_auth(made["key"].as_str().unwrap()), "1").await.expect(201);
    assert_eq!((&again["id"], again.get("key")), (&made["id"], None));
    let listed = server.client.get(server.url("/v1/keys")).bearer_auth(made["key"].as_str().unwrap());
    let listed = Answer::of(listed.send().await.unwrap()).await.expect(200);
    assert_eq!(listed["keys"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_day_later_a_repetition_is_a_request_of_its_own() {
    let (server, clock) = TestServer::with_clock().await;
    let engine = server.fixture.engine();
    change(&server, "1", Method::POST, "/v1/workflows", hello()).await.expect(200);
    clock.advance(OPERATIONS_KEPT);
    assert_eq!(engine.forget_operations().await.unwrap(), 0);
    clock.advance(Duration::from_millis(1));
    assert_eq!(engine.forget_operations().await.unwrap(), 1);
    change(&server, "1", Method::PUT, "/v1/schedules/nightly", nightly()).await.expect(200);
}
