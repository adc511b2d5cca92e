//! Bad requests: each gets a specific status and code, never a 5xx.

use reqwest::Method;
use serde_json::json;
use switchyard_runtime::{Principal, ids};

use crate::harness::{Answer, TestServer, hello};

const JSON: Option<&str> = Some("application/json");
const UNKNOWN_RUN: &str = "run_00000000000000000000000000";

#[tokio::test]
async fn every_bad_request_has_its_code() {
    let server = TestServer::start().await;
    let deep = format!(r#"{{"workflow": "x", "input": {}{}}}"#, "[".repeat(200), "]".repeat(200));
    let run = format!("/v1/runs/{UNKNOWN_RUN}");
    let on = |rest: &str| format!("{run}{rest}");
    let claim = format!(r#"{{"run_id": "{UNKNOWN_RUN}", "node": "a", "claim": 1}}"#);
    let bodies: Vec<(&str, Option<&str>, String, u16, &str)> = vec![
        ("/v1/runs", None, "{}".into(), 415, "not_json"),
        ("/v1/runs", Some("text/plain"), "{}".into(), 415, "not_json"),
        ("/v1/runs", Some("application/x-www-form-urlencoded"), "a=b".into(), 415, "not_json"),
        ("/v1/runs", JSON, "".into(), 400, "invalid_json"),
        ("/v1/runs", JSON, "{".into(), 400, "invalid_json"),
        ("/v1/runs", JSON, r#"{"workflow": "x"} {}"#.into(), 400, "invalid_json"),
        ("/v1/runs", JSON, deep, 400, "invalid_json"),
        ("/v1/runs", JSON, "[]".into(), 422, "invalid_body"),
        ("/v1/runs", JSON, "{}".into(), 422, "invalid_body"),
        ("/v1/runs", JSON, r#"{"workflow": 5}"#.into(), 422, "invalid_body"),
        ("/v1/runs", JSON, r#"{"workflow": "x", "nope": 1}"#.into(), 422, "invalid_body"),
        ("/v1/runs", JSON, r#"{"workflow": "nope"}"#.into(), 404, "unknown_workflow"),
        ("/v1/runs", JSON, r#"{"workflow": {"name": "x", "nodes": 1}}"#.into(), 422, "invalid"),
        ("/v1/runs", JSON, r#"{"workflow": {}, "version": 1}"#.into(), 422, "invalid_body"),
        ("/v1/runs", JSON, json!({"workflow": hello(), "deadline": "soon"}).to_string(), 422, "invalid_body"),
        ("/v1/runs", JSON, json!({"workflow": hello(), "input": {"name": 1}}).to_string(), 422, "invalid"),
        ("/v1/runs", JSON, json!({"workflow": hello(), "parallelism": 0}).to_string(), 422, "invalid_body"),
        (
            "/v1/runs",
            JSON,
            json!({"workflow": hello(), "start_at": "tomorrow"}).to_string(),
            422,
            "invalid_body",
        ),
        ("/v1/runs", JSON, json!({"workflow": hello(), "delay": "1"}).to_string(), 422, "invalid_body"),
        (
            "/v1/runs",
            JSON,
            json!({"workflow": hello(), "delay": "1h", "start_at": "2030-01-01T00:00:00Z"}).to_string(),
            422,
            "invalid_body",
        ),
        ("/v1/runs", JSON, json!({"workflow": hello(), "priority": 11}).to_string(), 400, "bad_request"),
        (
            "/v1/runs",
            JSON,
            json!({"workflow": hello(), "idempotency_key": ""}).to_string(),
            422,
            "invalid_body",
        ),
        (
            "/v1/runs",
            JSON,
            json!({"workflow": hello(), "idempotency_key": "k".repeat(513)}).to_string(),
            422,
            "too_long",
        ),
        ("/v1/workflows", JSON, r#"{"name": 1}"#.into(), 422, "invalid"),
        ("/v1/runs/nope/cancel", JSON, "{}".into(), 400, "invalid_id"),
        ("/v1/approvals/nope/approve", JSON, "{}".into(), 404, "unknown_approval"),
        ("/v1/dead-letters/nope/redrive", None, "".into(), 404, "unknown_dead_letter"),
        ("/v1/dead-letters/purge", JSON, "{}".into(), 422, "invalid_body"),
        ("/v1/dead-letters/purge", JSON, r#"{"all": true, "older_than": "1d"}"#.into(), 422, "invalid_body"),
        ("/v1/dead-letters/purge", JSON, r#"{"older_than": "old"}"#.into(), 422, "invalid_body"),
        ("/v1/schedules/nope/pause", None, "".into(), 404, "unknown_schedule"),
        ("/v1/schedules/nope/resume", None, "".into(), 404, "unknown_schedule"),
        (
            "/v1/schedules/nope/backfill",
            JSON,
            r#"{"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}"#.into(),
            404,
            "unknown_schedule",
        ),
        (
            "/v1/schedules/nope/backfill",
            JSON,
            r#"{"from": "soon", "until": "later"}"#.into(),
            422,
            "invalid_body",
        ),
        (
            "/v1/schedules/nope/backfill",
            JSON,
            r#"{"from": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}"#.into(),
            422,
            "invalid_body",
        ),
        ("/v1/tasks/claim", JSON, r#"{"worker": "w", "types": ["http"]}"#.into(), 422, "unclaimable_type"),
        ("/v1/tasks/claim", JSON, r#"{"worker": "w", "types": ["*"]}"#.into(), 422, "unclaimable_type"),
        ("/v1/tasks/claim", JSON, r#"{"worker": "w", "functions": ["a b"]}"#.into(), 422, "invalid_body"),
        ("/v1/tasks/claim", JSON, r#"{"worker": "w", "functions": []}"#.into(), 422, "invalid_body"),
        ("/v1/tasks/claim", JSON, r#"{"worker": "w", "slots": 0}"#.into(), 422, "invalid_body"),
        ("/v1/tasks/claim", JSON, r#"{"worker": "w", "lease": "1ms"}"#.into(), 422, "invalid_body"),
        ("/v1/tasks/complete", JSON, claim.clone(), 404, "unknown_run"),
        ("/v1/tasks/heartbeat", JSON, claim.clone(), 404, "unknown_run"),
        ("/v1/tasks/release", JSON, claim, 404, "unknown_run"),
    ];
    for (path, kind, body, status, code) in bodies {
        let shown: String = body.chars().take(80).collect();
        let answer = server.send(Method::POST, path, kind, body.into_bytes()).await;
        assert_eq!(
            (answer.status.as_u16(), answer.body["code"].as_str()),
            (status, Some(code)),
            "{path} {shown}"
        );
    }
    for (path, status, code) in [
        ("/nope".to_owned(), 404, "unknown_route"),
        ("/v1/nope".to_owned(), 404, "unknown_route"),
        ("/v1/runs?limit=0".to_owned(), 400, "invalid_query"),
        ("/v1/runs?limit=201".to_owned(), 400, "invalid_query"),
        ("/v1/runs?limit=x".to_owned(), 400, "invalid_query"),
        ("/v1/runs?status=nope".to_owned(), 400, "invalid_query"),
        ("/v1/runs?cursor=nope".to_owned(), 400, "invalid_query"),
        ("/v1/runs?nope=1".to_owned(), 400, "invalid_query"),
        ("/v1/runs/nope".to_owned(), 400, "invalid_id"),
        ("/v1/runs/%FF".to_owned(), 400, "invalid_id"),
        (on(""), 404, "unknown_run"),
        (on("/events"), 404, "unknown_run"),
        (on("/patches"), 404, "unknown_run"),
        ("/v1/approvals?run=nope".to_owned(), 400, "invalid_id"),
        ("/v1/approvals/nope".to_owned(), 404, "unknown_approval"),
        ("/v1/workflows/nope".to_owned(), 404, "unknown_workflow"),
        ("/v1/events".to_owned(), 426, "not_a_websocket"),
        ("/v1/dead-letters/nope".to_owned(), 404, "unknown_dead_letter"),
        ("/v1/dead-letters?limit=0".to_owned(), 400, "invalid_query"),
        ("/v1/dead-letters?limit=1001".to_owned(), 400, "invalid_query"),
        ("/v1/schedules/nope".to_owned(), 404, "unknown_schedule"),
        ("/v1/schedules/nope?upcoming=101".to_owned(), 400, "invalid_query"),
    ] {
        let answer = server.get(&path).await;
        assert_eq!((answer.status.as_u16(), answer.body["code"].as_str()), (status, Some(code)), "{path}");
    }
    for verb in ["cancel", "pause", "resume", "retry", "signals/go"] {
        server.post(&on(&format!("/{verb}")), json!({})).await.problem(404, "unknown_run");
    }
}

#[tokio::test]
async fn wrong_methods_say_which_are_right() {
    let server = TestServer::start().await;
    let response = server.client.delete(server.url("/v1/runs")).send().await.unwrap();
    let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
    Answer::of(response).await.problem(405, "wrong_method");
}

#[tokio::test]
async fn a_web_page_of_another_name_is_kept_out() {
    let server = TestServer::start().await;
    for (header, name, code) in [
        ("host", "evil.example:7070", "foreign_host"),
        ("origin", "http://evil.example", "foreign_origin"),
        ("origin", "null", "foreign_origin"),
        // A page from another program on this machine is not trusted.
        ("origin", "http://localhost:3000", "foreign_origin"),
        ("origin", "http://127.0.0.1", "foreign_origin"),
    ] {
        let response = server.client.get(server.url("/v1/runs")).header(header, name).send().await.unwrap();
        Answer::of(response).await.problem(403, code);
    }
    let own = server.client.get(server.url("/v1/runs")).header("origin", server.url(""));
    Answer::of(own.send().await.unwrap()).await.expect(200);
}

#[tokio::test]
async fn pages_of_origins_that_are_set_are_let_in_and_told_so() {
    let origins = vec!["http://localhost:3000".to_owned(), "https://app.example.com".to_owned()];
    let server = TestServer::with_cors_origins(origins).await;
    for origin in ["http://localhost:3000", "https://app.example.com"] {
        let request = server.client.get(server.url("/v1/runs")).header("origin", origin);
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["access-control-allow-origin"], origin);
        assert_eq!(response.headers()["vary"], "origin");
        Answer::of(response).await.expect(200);
    }
    let response = server
        .client
        .get(server.url("/v1/runs"))
        .header("origin", "http://localhost:3001")
        .send()
        .await
        .unwrap();
    assert!(!response.headers().contains_key("access-control-allow-origin"));
    Answer::of(response).await.problem(403, "foreign_origin");
}

#[tokio::test]
async fn a_browser_may_ask_what_it_may_send_without_a_key() {
    let server = TestServer::with_cors_origins(vec!["https://app.example.com".to_owned()]).await;
    server
        .fixture
        .engine()
        .keys()
        .create(&Principal::local("tester"), &ids::operation_id(), "first", None)
        .await
        .unwrap();
    let preflight = |origin: &str| {
        let request = server.client.request(Method::OPTIONS, server.url("/v1/runs"));
        request.header("origin", origin).header("access-control-request-method", "POST").send()
    };
    let response = preflight("https://app.example.com").await.unwrap();
    assert_eq!(response.status(), 204);
    assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example.com");
    let headers = response.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(headers.contains("authorization") && headers.contains("idempotency-key"), "{headers}");
    let response = preflight("https://evil.example").await.unwrap();
    assert!(!response.headers().contains_key("access-control-allow-origin"));
    Answer::of(response).await.problem(401, "no_key");
}

#[tokio::test]
async fn invalid_utf8_is_refused() {
    let server = TestServer::start().await;
    let body = b"{\"workflow\": \"\xff\xfe\"}".to_vec();
    server.send(Method::POST, "/v1/runs", JSON, body).await.problem(400, "invalid_json");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = TestServer::start().await;
    let body = format!(r#"{{"workflow": "x", "input": "{}"}}"#, "x".repeat(17 * 1024 * 1024));
    // A body without a declared length is rejected as well.
    let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
        body.as_bytes().chunks(1 << 20).map(|piece| Ok(piece.to_vec())).collect();
    let streamed = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
    for body in [reqwest::Body::from(body), streamed] {
        let request = server.client.post(server.url("/v1/runs")).header("content-type", "application/json");
        // The server may answer and close before it has read the whole body, which the client may see as a broken pipe.
        if let Ok(response) = request.body(body).send().await {
            Answer::of(response).await.problem(413, "body_too_large");
        }
    }
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn every_mistake_of_a_definition_is_told_at_once() {
    let server = TestServer::start().await;
    let definition = json!({
        "name": "bad",
        "nodes": { "a": { "type": "htp" }, "b": { "type": "transform", "needs": ["c"], "value": 1 } },
    });
    let problem = server.post("/v1/runs", json!({ "workflow": definition })).await.problem(422, "invalid");
    assert!(problem["problems"].as_array().unwrap().iter().any(|p| p["path"] == "nodes.a.type"), "{problem}");
}
