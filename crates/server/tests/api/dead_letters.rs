//! Lists, shows, redrives and removes dead letters.

use serde_json::{Value, json};
use switchyard_core::Timestamp;
use switchyard_store::DeadLetter;

use crate::harness::TestServer;

/// A workflow whose handler turns the task into a dead letter.
fn poison() -> Value {
    let input = json!({ "code": "poisoned", "message": "it kills" });
    json!({ "name": "poison", "nodes": { "broken": { "type": "function", "function": "fail", "input": input } } })
}

#[tokio::test]
async fn a_dead_letter_is_shown_redriven_and_removed() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/v1/dead-letters").await.expect(200)["dead_letters"], json!([]));
    let run = server.submit(poison(), json!({})).await;
    server.end(&run).await;
    let listed = server.get("/v1/dead-letters").await.expect(200)["dead_letters"].clone();
    let letter = &listed[0];
    assert_eq!(
        (&letter["run_id"], &letter["node"], &letter["kind"]),
        (&json!(run), &json!("broken"), &json!("task"))
    );
    assert_eq!((&letter["reason"], &letter["queue"]), (&json!("it kills"), &json!("builtin")));
    let queues = server.get("/v1/queues").await.expect(200);
    assert_eq!(
        (&queues["dead_letters"], &queues["queues"][0]["dead_letters"]),
        (&json!(1), &json!(1)),
        "{queues}"
    );
    let path = format!("/v1/dead-letters/{}", letter["id"].as_str().unwrap());
    let shown = server.get(&path).await.expect(200);
    assert_eq!(shown["deliveries"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["deliveries"][0]["ended"], "it kills (poisoned)");

    let redriven = server.post(&format!("{path}/redrive"), json!({ "by": "ada" })).await.expect(200);
    assert_eq!(redriven["run"]["run_id"], json!(run));
    server.get(&path).await.problem(404, "unknown_dead_letter");
    server.end(&run).await;
    assert_eq!(server.get(&format!("/v1/runs/{run}")).await.expect(200)["attempt"], 2);

    let again = server.get("/v1/dead-letters").await.expect(200)["dead_letters"][0]["id"].clone();
    let path = format!("/v1/dead-letters/{}", again.as_str().unwrap());
    server.delete(&path).await.expect(204);
    server.delete(&path).await.problem(404, "unknown_dead_letter");
    server.post(&format!("{path}/redrive"), json!({})).await.problem(404, "unknown_dead_letter");
    let purged = server.post("/v1/dead-letters/purge", json!({ "older_than": "1h" })).await.expect(200);
    assert_eq!(purged["purged"], 0);
}

#[tokio::test]
async fn a_list_has_no_signals_and_half_a_signal_is_not_sent_again() {
    let server = TestServer::start().await;
    let signal = format!("oversized:20971520:{{\"output\": \"{}", "x".repeat(1_000));
    let letter = DeadLetter::of_signal(&signal, "too large", Timestamp::from_millis(1));
    let path = format!("/v1/dead-letters/{}", letter.id);
    server.fixture.services().archive.bury(letter).await.unwrap();
    let listed = server.get("/v1/dead-letters").await.expect(200)["dead_letters"][0].clone();
    assert_eq!((&listed["reason"], listed.get("signal")), (&json!("too large"), None));
    assert_eq!(server.get(&path).await.expect(200)["signal"], json!(signal));
    let refused = server.post(&format!("{path}/redrive"), json!({})).await.problem(400, "bad_request");
    assert!(refused["detail"].as_str().unwrap().contains("only the beginning"), "{refused}");
    server.get(&path).await.expect(200);
}
