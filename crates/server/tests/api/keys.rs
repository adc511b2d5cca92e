//! Authentication and API keys.

use reqwest::{Client, Method};
use serde_json::{Value, json};
use switchyard_api::{DrawnKey, KeyText};
use switchyard_core::Hash;
use switchyard_runtime::{ApiKeys, Principal, ids};
use tokio::net::TcpListener;

use crate::harness::{Answer, TestServer, client_with, hello, waiting};

/// Creates a key over HTTP; the first one needs no key.
async fn key(server: &TestServer, client: &Client, name: &str) -> (String, String) {
    let request = client.post(server.url("/v1/keys")).json(&json!({ "name": name }));
    let made = Answer::of(request.send().await.unwrap()).await.expect(201);
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

async fn with_key(server: &TestServer, key: &str, path: &str) -> Answer {
    Answer::of(client_with(key).get(server.url(path)).send().await.unwrap()).await
}

#[tokio::test]
async fn without_keys_everybody_on_the_machine_is_let_in() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/v1/keys").await.expect(200)["keys"], json!([]));
    // A server without keys ignores a key that a client sends.
    with_key(&server, "swk_0_0", "/v1/runs").await.expect(200);
}

#[tokio::test]
async fn the_first_key_closes_the_door_behind_it() {
    let server = TestServer::start().await;
    let (_, mine) = key(&server, &server.client, "ada").await;
    server.get("/v1/runs").await.problem(401, "no_key");
    with_key(&server, &mine, "/v1/runs").await.expect(200);
    // The server rejects the secret of another key, an incomplete key and a revoked key.
    let (other_id, other) = key(&server, &client_with(&mine), "bob").await;
    let (id, secret) = mine.strip_prefix("swk_").unwrap().split_once('_').unwrap();
    for wrong in [
        format!("swk_{other_id}_{secret}"),
        format!("swk_{id}_{}", &secret[1..]),
        format!("swk_{id}_"),
        format!("swk_{id}"),
        "swk_".to_owned(),
        "nonsense".to_owned(),
        secret.to_owned(),
    ] {
        with_key(&server, &wrong, "/v1/runs").await.problem(401, "wrong_key");
    }
    let revoke = client_with(&mine).post(server.url(&format!("/v1/keys/{other_id}/revoke")));
    let revoked = Answer::of(revoke.send().await.unwrap()).await.expect(200);
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
    with_key(&server, &other, "/v1/runs").await.problem(401, "wrong_key");
    let listed = with_key(&server, &mine, "/v1/keys").await.expect(200);
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    let shown = listed.to_string();
    assert!(!shown.contains(secret) && !shown.contains("digest"), "{shown}");
}

#[tokio::test]
async fn every_route_but_the_public_ones_wants_a_key() {
    let server = TestServer::start().await;
    key(&server, &server.client, "ada").await;
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        server.get(path).await.expect(200);
    }
    for path in ["/metrics", "/nope", "/v1/nope"] {
        server.get(path).await.problem(401, "no_key");
    }
    let document = switchyard_server::openapi();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["security"] == json!([]) {
                continue;
            }
            let method: Method = method.to_uppercase().parse().unwrap();
            let answer = server.send(method, path, Some("application/json"), b"{}".to_vec()).await;
            answer.problem(401, "no_key");
        }
    }
}

#[tokio::test]
async fn a_refusal_says_what_is_wanted() {
    let server = TestServer::start().await;
    key(&server, &server.client, "ada").await;
    let response = server.client.get(server.url("/v1/runs")).send().await.unwrap();
    assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"switchyard\"");
    let wrong = client_with("swk_1_2").get(server.url("/v1/runs")).send().await.unwrap();
    assert!(wrong.headers()["www-authenticate"].to_str().unwrap().contains("invalid_token"));
    let basic = server.client.get(server.url("/v1/runs")).header("authorization", "Basic YTpi");
    Answer::of(basic.send().await.unwrap()).await.problem(401, "no_key");
}

#[tokio::test]
async fn keys_outlive_the_server_and_the_last_one_locks_it() {
    let mut server = TestServer::start().await;
    let (id, mine) = key(&server, &server.client, "ada").await;
    server = server.restart().await;
    server.get("/v1/runs").await.problem(401, "no_key");
    let revoke = client_with(&mine).post(server.url(&format!("/v1/keys/{id}/revoke")));
    Answer::of(revoke.send().await.unwrap()).await.expect(200);
    // No valid key is left; the server still requires one.
    server.get("/v1/runs").await.problem(401, "no_key");
    with_key(&server, &mine, "/v1/runs").await.problem(401, "wrong_key");
    server.restart().await.get("/v1/runs").await.problem(401, "no_key");
}

/// Creates a key directly in the archive.
async fn create(keys: &ApiKeys, name: &str) -> String {
    let made = keys.create(&Principal::local("tester"), &ids::operation_id(), name, None).await.unwrap();
    made.text.unwrap().to_string()
}

#[tokio::test]
async fn the_first_key_counts_for_the_next_request_from_any_process() {
    let server = TestServer::start().await;
    server.get("/v1/runs").await.expect(200);
    create(&switchyard_host::embedded::keys(&server.data).unwrap(), "ada").await;
    server.get("/v1/runs").await.problem(401, "no_key");
}

#[tokio::test]
async fn a_key_may_be_drawn_by_its_holder() {
    let server = TestServer::start().await;
    let text = KeyText::drawn(7, [9; 32]);
    let drawn = json!(DrawnKey::from(&text));
    for wrong in
        [json!({ "id": "7", "digest": drawn["digest"] }), json!({ "id": drawn["id"], "digest": "x" })]
    {
        server.post("/v1/keys", json!({ "name": "ada", "drawn": wrong })).await.problem(422, "invalid_body");
    }
    let made = server.post("/v1/keys", json!({ "name": "ada", "drawn": drawn })).await.expect(201);
    assert_eq!((&made["id"], made.get("key")), (&json!(text.id()), None));
    with_key(&server, &text.to_string(), "/v1/runs").await.expect(200);
    let taken =
        json!({ "name": "bob", "drawn": { "id": text.id(), "digest": Hash::of(b"other").to_string() } });
    let request = client_with(&text.to_string()).post(server.url("/v1/keys")).json(&taken);
    Answer::of(request.send().await.unwrap()).await.problem(400, "bad_request");
}

#[tokio::test]
async fn a_key_that_is_made_beside_the_server_works_at_once() {
    let server = TestServer::start().await;
    let beside = switchyard_host::embedded::keys(&server.data).unwrap();
    let first = create(&beside, "ada").await;
    with_key(&server, &first, "/v1/runs").await.expect(200);
    let second = create(&beside, "bob").await;
    with_key(&server, &second, "/v1/runs").await.expect(200);
    // The server can still write: it shares the archive with `beside`.
    let run = client_with(&first).post(server.url("/v1/runs")).json(&json!({ "workflow": hello() }));
    Answer::of(run.send().await.unwrap()).await.expect(202);
}

#[tokio::test]
async fn histories_show_whose_key_it_was() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    let (_, mine) = key(&server, &server.client, "ada's laptop").await;
    let client = client_with(&mine);
    let pause = client.post(server.url(&format!("/v1/runs/{run}/pause")));
    Answer::of(pause.send().await.unwrap()).await.expect(200);
    let events =
        client.get(server.url(&format!("/v1/runs/{run}/events"))).header("accept", "application/json");
    let page = Answer::of(events.send().await.unwrap()).await.expect(200);
    assert_eq!(page["events"].as_array().unwrap().last().unwrap()["by"], "ada's laptop");
}

#[tokio::test]
async fn an_address_that_others_can_reach_always_wants_keys_and_takes_any_name() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let server = TestServer::on(listener, |_| {}).await;
    server.get("/healthz").await.expect(200);
    server.get("/v1/runs").await.problem(401, "no_key");
    server.post("/v1/keys", json!({ "name": "me first" })).await.problem(401, "no_key");
    let made = create(server.fixture.engine().keys(), "ada").await;
    for (header, name) in [("host", "switchyard.example"), ("origin", "https://dashboard.example")] {
        let request = client_with(&made).get(server.url("/v1/runs")).header(header, name);
        Answer::of(request.send().await.unwrap()).await.expect(200);
        let stranger = server.client.get(server.url("/v1/runs")).header(header, name);
        Answer::of(stranger.send().await.unwrap()).await.problem(401, "no_key");
    }
}

#[tokio::test]
async fn a_key_needs_a_name() {
    let server = TestServer::start().await;
    for (name, code) in [
        (json!(""), "invalid_body"),
        (json!("a\nb"), "invalid_body"),
        (json!("x".repeat(257)), "too_long"),
        (json!(5), "invalid_body"),
    ] {
        server.post("/v1/keys", json!({ "name": name })).await.problem(422, code);
    }
    server.post("/v1/keys/nobody/revoke", json!({})).await.problem(404, "unknown_key");
    server.get("/v1/runs").await.expect(200);
}
