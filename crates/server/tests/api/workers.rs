//! The list of workers, and the reasons why runs wait.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestServer, one_function};

async fn worker(server: &TestServer, name: &str) -> Option<Value> {
    let listed = server.get("/v1/workers").await.expect(200);
    listed["workers"].as_array().unwrap().iter().find(|worker| worker["name"] == name).cloned()
}

#[tokio::test]
async fn a_worker_over_http_is_listed_with_what_it_serves_as_long_as_it_is_heard_of() {
    let (server, clock) = TestServer::with_clock().await;
    let claim = json!({
        "worker": "w", "wait": "0ms", "lease": "30s", "functions": ["double", "mail.*"], "types": ["function.gpu"],
        "slots": 3, "busy": 1, "version": "1.2",
    });
    server.post("/v1/tasks/claim", claim.clone()).await.expect(200);
    let listed = worker(&server, "w").await.unwrap();
    for (field, value) in [
        ("kind", json!("http")),
        ("alive", json!(true)),
        ("functions", json!(["double", "mail.*"])),
        ("types", json!(["function.gpu"])),
        ("slots", json!(4)),
        ("busy", json!(1)),
        ("version", json!("1.2")),
    ] {
        assert_eq!(listed[field], value, "{listed}");
    }
    clock.advance(Duration::from_secs(31));
    assert_eq!(worker(&server, "w").await.unwrap()["alive"], false);
    // A worker that holds a task is alive as long as it sends heartbeats.
    server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.post("/v1/tasks/claim", claim).await.expect(200)["tasks"][0].clone();
    for _ in 0..3 {
        clock.advance(Duration::from_secs(20));
        let beat = json!({
            "run_id": task["run_id"], "node": task["node"], "claim": task["claim"], "lease": "30s",
        });
        server.post("/v1/tasks/heartbeat", beat).await.expect(200);
    }
    let listed = worker(&server, "w").await.unwrap();
    assert_eq!((&listed["alive"], &listed["functions"]), (&json!(true), &json!(["double", "mail.*"])));
}

#[tokio::test]
async fn a_run_says_that_no_worker_serves_its_function_until_one_does() {
    let server = TestServer::start().await;
    let run = server.submit(one_function(json!({ "function": "enrich@2" })), json!({ "n": 1 })).await;
    let waits = server.get(&format!("/v1/runs/{run}/waits")).await.expect(200);
    let reason = |what: &str| json!([{ "for": what, "node": "double", "queue": "function:enrich@2" }]);
    assert_eq!(waits, json!({ "run_id": run, "status": "running", "waits": reason("worker") }));
    assert_eq!(server.get(&format!("/v1/runs/{run}")).await.expect(200)["waiting"], reason("worker"));
    let queues = server.get("/v1/queues").await.expect(200);
    assert_eq!(queues["queues"][0]["workers"], 0, "{queues}");
    // The worker serves another version, not this one.
    let claim =
        |function: &str| json!({ "worker": function, "wait": "0ms", "slots": 1, "functions": [function] });
    server.post("/v1/tasks/claim", claim("enrich")).await.expect(200);
    let waits = server.get(&format!("/v1/runs/{run}/waits")).await.expect(200);
    assert_eq!(waits["waits"], reason("worker"));
    let tasks = server.post("/v1/tasks/claim", claim("enrich@2")).await.expect(200);
    assert_eq!(tasks["tasks"][0]["run_id"], run);
    let waits = server.get(&format!("/v1/runs/{run}/waits")).await.expect(200);
    assert_eq!(waits["waits"], json!([]), "it is being executed");
    let next = server.submit(one_function(json!({ "function": "enrich@2" })), json!({ "n": 1 })).await;
    let waits = server.get(&format!("/v1/runs/{next}/waits")).await.expect(200);
    assert_eq!(waits["waits"], reason("queue"), "a worker serves it");
    server.get("/v1/runs/run_00000000000000000000000000/waits").await.problem(404, "unknown_run");
}
