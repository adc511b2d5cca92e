//! The worker protocol over HTTP.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestServer, one_function};

impl TestServer {
    async fn claim(&self, more: Value) -> Vec<Value> {
        let mut body = json!({ "worker": "w", "wait": "0ms" });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = self.post("/v1/tasks/claim", body).await.expect(200);
        answer["tasks"].as_array().unwrap().clone()
    }

    /// Claims the only task.
    async fn claim_one(&self, more: Value) -> Value {
        let mut tasks = self.claim(more).await;
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks.remove(0)
    }
}

/// A request body for this task.
fn about(task: &Value, more: Value) -> Value {
    let mut body = json!({ "run_id": task["run_id"], "node": task["node"], "claim": task["claim"] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn a_task_is_claimed_and_completed_once() {
    let server = TestServer::start().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 21 })).await;
    let task = server.claim_one(json!({})).await;
    assert_eq!(task["run_id"], run);
    assert_eq!((&task["function"], &task["type"]), (&json!("double"), &json!("function")));
    assert_eq!((&task["input"], &task["attempt"]), (&json!({ "n": 21 }), &json!(1)));
    assert_eq!(task["idempotency_key"], format!("{run}/double"));
    assert!(server.claim(json!({})).await.is_empty());
    let done = about(&task, json!({ "output": 42 }));
    server.post("/v1/tasks/complete", done.clone()).await.expect(200);
    assert_eq!(server.end(&run).await["output"], 42);
    server.post("/v1/tasks/complete", done).await.problem(409, "already_settled");
    assert_eq!(server.end(&run).await["output"], 42);
}

#[tokio::test]
async fn a_claim_waits_for_work() {
    let server = TestServer::start().await;
    let claim =
        server.post("/v1/tasks/claim", json!({ "worker": "w", "wait": "60s", "types": ["function*"] }));
    let submit = server.submit(one_function(json!({ "queue": "gpu" })), json!({ "n": 1 }));
    let (claimed, run) = tokio::join!(claim, submit);
    let claimed = claimed.expect(200);
    assert_eq!(
        (&claimed["tasks"][0]["run_id"], &claimed["tasks"][0]["type"]),
        (&json!(run), &json!("function.gpu"))
    );
}

#[tokio::test]
async fn queues_are_apart() {
    let server = TestServer::start().await;
    server.submit(one_function(json!({ "queue": "gpu" })), json!({ "n": 1 })).await;
    assert!(server.claim(json!({ "types": ["function"] })).await.is_empty());
    server.claim_one(json!({ "types": ["function.gpu"] })).await;
}

#[tokio::test]
async fn a_worker_gets_the_functions_that_it_names_and_no_others() {
    let server = TestServer::start().await;
    for function in ["double", "double@2", "halve"] {
        server.submit(one_function(json!({ "function": function })), json!({ "n": 1 })).await;
    }
    assert!(server.claim(json!({ "functions": ["treble"] })).await.is_empty());
    // A queue and a function with the same name are different.
    assert!(server.claim(json!({ "types": ["function.double"], "slots": 9 })).await.is_empty());
    let called = |tasks: Vec<Value>| tasks.iter().map(|task| task["function"].clone()).collect::<Vec<_>>();
    let new = server.claim(json!({ "functions": ["double@2", "treble"], "slots": 9 })).await;
    assert_eq!(called(new), ["double@2"]);
    let all = server.claim(json!({ "functions": ["double*"], "slots": 9 })).await;
    assert_eq!(called(all), ["double"]);
    let rest = server.claim(json!({ "slots": 9 })).await;
    assert_eq!(called(rest), ["halve"], "a worker that names nothing takes every function");
}

#[tokio::test]
async fn a_failure_is_retried_by_the_nodes_policy() {
    let (server, clock) = TestServer::with_clock().await;
    let retry = json!({ "retry": { "max_attempts": 2, "initial": "1s", "backoff": "fixed" } });
    let run = server.submit(one_function(retry), json!({ "n": 1 })).await;
    let first = server.claim_one(json!({})).await;
    let error = json!({ "error": { "message": "not today", "code": "busy" } });
    server.post("/v1/tasks/fail", about(&first, error.clone())).await.expect(200);
    server.post("/v1/tasks/fail", about(&first, error.clone())).await.problem(409, "already_settled");
    clock.advance(Duration::from_secs(10));
    server.fixture.engine().fire_timers().await.unwrap();
    let second = server.claim_one(json!({})).await;
    assert_eq!((&second["attempt"], &second["claim"]), (&json!(2), &json!(2)));
    server.post("/v1/tasks/fail", about(&second, error)).await.expect(200);
    let ended = server.end(&run).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("busy")));
}

#[tokio::test]
async fn a_lease_that_ran_out_answers_409_and_changes_nothing() {
    let (server, clock) = TestServer::with_clock().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let lost = server.claim_one(json!({ "lease": "10s" })).await;
    clock.advance(Duration::from_secs(11));
    for verb in ["heartbeat", "complete", "release"] {
        let path = format!("/v1/tasks/{verb}");
        server.post(&path, about(&lost, json!({}))).await.problem(409, "lease_expired");
    }
    let again = server.claim_one(json!({ "worker": "other" })).await;
    assert_eq!((&again["attempt"], &again["claim"]), (&json!(1), &json!(2)));
    server
        .post("/v1/tasks/complete", about(&lost, json!({ "output": 1 })))
        .await
        .problem(409, "lease_expired");
    server.post("/v1/tasks/complete", about(&again, json!({ "output": 2 }))).await.expect(200);
    assert_eq!(server.end(&run).await["output"], 2);
}

#[tokio::test]
async fn heartbeats_keep_a_lease() {
    let (server, clock) = TestServer::with_clock().await;
    server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({ "lease": "10s" })).await;
    for _ in 0..3 {
        clock.advance(Duration::from_secs(9));
        let kept =
            server.post("/v1/tasks/heartbeat", about(&task, json!({ "lease": "10s" }))).await.expect(200);
        assert_eq!(kept["standing"], "held");
        assert_eq!(server.fixture.engine().reclaim().await.unwrap(), 0);
    }
    server.post("/v1/tasks/complete", about(&task, json!({}))).await.expect(200);
}

#[tokio::test]
async fn a_worker_that_vanished_loses_its_task() {
    let (server, clock) = TestServer::with_clock().await;
    server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    server.claim_one(json!({ "lease": "10s" })).await;
    clock.advance(Duration::from_secs(11));
    // The background duty may already have reclaimed the task.
    server.fixture.engine().reclaim().await.unwrap();
    assert_eq!(server.claim_one(json!({})).await["claim"], 2);
}

#[tokio::test]
async fn a_call_that_takes_too_long_has_failed() {
    let (server, clock) = TestServer::with_clock().await;
    let run = server.submit(one_function(json!({ "timeout": "5s" })), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({ "lease": "1m" })).await;
    assert_eq!(task["timeout"], "5s");
    clock.advance(Duration::from_secs(6));
    server.post("/v1/tasks/heartbeat", about(&task, json!({}))).await.problem(409, "task_timed_out");
    assert_eq!(server.end(&run).await["error"]["code"], "timeout");
}

/// The background duty ends the attempt without a request of the worker.
#[tokio::test]
async fn a_worker_that_says_nothing_is_held_to_the_limit() {
    let (server, clock) = TestServer::with_clock().await;
    let run = server.submit(one_function(json!({ "timeout": "5s" })), json!({ "n": 1 })).await;
    server.claim_one(json!({ "lease": "1m" })).await;
    clock.advance(Duration::from_secs(6));
    let ended = server.end(&run).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("timeout")));
}

#[tokio::test]
async fn without_a_timeout_of_its_own_a_function_has_the_default() {
    let (server, clock) = TestServer::with_clock().await;
    let retry = json!({ "retry": { "max_attempts": 2, "initial": "1s", "backoff": "fixed" } });
    let run = server.submit(one_function(retry), json!({ "n": 1 })).await;
    let first = server.claim_one(json!({ "lease": "1h" })).await;
    assert_eq!(first["timeout"], "30m");
    clock.advance(Duration::from_secs(30 * 60));
    server.post("/v1/tasks/complete", about(&first, json!({}))).await.problem(409, "task_timed_out");
    clock.advance(Duration::from_secs(1));
    server.fixture.engine().fire_timers().await.unwrap();
    let second = server.claim_one(json!({})).await;
    assert_eq!(second["attempt"], 2, "it was an attempt");
    server.post("/v1/tasks/complete", about(&second, json!({ "output": 2 }))).await.expect(200);
    assert_eq!(server.end(&run).await["output"], 2);
}

#[tokio::test]
async fn a_cancelled_run_ends_although_its_worker_does_not_stop() {
    let (server, clock) = TestServer::with_clock().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({ "lease": "1h" })).await;
    let cancelled = server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    assert_eq!(cancelled["status"], "closing");
    clock.advance(Duration::from_secs(30));
    assert_eq!(server.end(&run).await["status"], "cancelled");
    server.post("/v1/tasks/complete", about(&task, json!({}))).await.problem(409, "already_settled");

    let run = server.submit(one_function(json!({})), json!({ "n": 2 })).await;
    server.claim_one(json!({ "lease": "1h" })).await;
    server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    let hurried = server.post(&format!("/v1/runs/{run}/cancel"), json!({ "now": true })).await.expect(200);
    assert_eq!(hurried["status"], "cancelled");
}

#[tokio::test]
async fn a_released_task_is_for_another() {
    let server = TestServer::start().await;
    server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({})).await;
    server.post("/v1/tasks/release", about(&task, json!({}))).await.expect(200);
    let again = server.claim_one(json!({})).await;
    assert_eq!((&again["attempt"], &again["claim"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn a_cancelled_run_tells_its_worker_to_stop() {
    let server = TestServer::start().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({})).await;
    server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    let told = server.post("/v1/tasks/heartbeat", about(&task, json!({}))).await.expect(200);
    assert_eq!(told["standing"], "stop");
    server.post("/v1/tasks/release", about(&task, json!({}))).await.expect(200);
    assert_eq!(server.end(&run).await["status"], "cancelled");
}

#[tokio::test]
async fn conditions_and_caches_are_seen_to_before_a_worker_is_asked() {
    let server = TestServer::start().await;
    let skipped = server.submit(one_function(json!({ "when": "input.n > 5" })), json!({ "n": 1 })).await;
    assert!(server.claim(json!({})).await.is_empty());
    assert_eq!(server.end(&skipped).await["nodes"]["double"]["status"], "skipped");

    let cached = one_function(json!({ "cache": { "ttl": "1h" } }));
    let first = server.submit(cached.clone(), json!({ "n": 2 })).await;
    let task = server.claim_one(json!({})).await;
    server.post("/v1/tasks/complete", about(&task, json!({ "output": 4 }))).await.expect(200);
    server.end(&first).await;
    let second = server.submit(cached, json!({ "n": 2 })).await;
    assert!(server.claim(json!({})).await.is_empty());
    assert_eq!(server.end(&second).await["output"], 4);
}

#[tokio::test]
async fn tasks_of_switchyard_itself_are_nobodys_business() {
    let server = TestServer::start().await;
    let run = server.submit(crate::harness::waiting(), Value::Null).await;
    let body = json!({ "run_id": run, "node": "wait", "claim": 1, "output": 1 });
    server.post("/v1/tasks/complete", body).await.problem(409, "not_a_worker_task");
    let body = json!({ "run_id": run, "node": "nope", "claim": 1 });
    server.post("/v1/tasks/release", body).await.problem(404, "unknown_node");
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_takes_nothing() {
    let server = TestServer::start().await;
    let body = json!({ "worker": "gone", "wait": "60s" });
    let waiting = server.client.post(server.url("/v1/tasks/claim")).json(&body);
    // The request may or may not have arrived; in both cases the next worker must get the task.
    let _ = tokio::time::timeout(Duration::from_millis(200), waiting.send()).await;
    server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    server.claim_one(json!({ "wait": "30s" })).await;
}

#[tokio::test]
async fn a_checkpoint_is_handed_to_the_next_worker() {
    let (server, clock) = TestServer::with_clock().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let lost = server.claim_one(json!({ "lease": "30s" })).await;
    assert_eq!(lost["checkpoint"], Value::Null);
    let kept = about(&lost, json!({ "value": { "page": 3, "text": "x".repeat(5_000) } }));
    assert_eq!(server.post("/v1/tasks/checkpoint", kept.clone()).await.expect(200)["standing"], "held");
    clock.advance(Duration::from_secs(30));
    server.post("/v1/tasks/checkpoint", kept.clone()).await.problem(409, "lease_expired");
    let next = server.claim_one(json!({})).await;
    assert_eq!((&next["attempt"], &next["checkpoint"]), (&json!(1), &kept["value"]));
    server.post("/v1/tasks/checkpoint", kept).await.problem(409, "lease_expired");
    server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    let last = about(&next, json!({ "value": null }));
    assert_eq!(server.post("/v1/tasks/checkpoint", last).await.expect(200)["standing"], "stop");
}

#[tokio::test]
async fn chunks_are_seen_by_those_who_follow() {
    let server = TestServer::start().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({})).await;
    let chunks = about(&task, json!({ "chunks": ["Hel", { "json": 1 }] }));
    assert_eq!(server.post("/v1/tasks/chunks", chunks.clone()).await.expect(200)["standing"], "held");
    let large = about(&task, json!({ "chunks": ["x".repeat(5_000)] }));
    server.post("/v1/tasks/chunks", large).await.problem(422, "chunk_too_large");
    server.post("/v1/tasks/chunks", about(&task, json!({ "chunks": [] }))).await.problem(422, "invalid_body");
    server.post("/v1/tasks/complete", about(&task, json!({ "output": 2 }))).await.expect(200);
    server.post("/v1/tasks/chunks", chunks).await.problem(409, "already_settled");
    server.end(&run).await;
    let events = server.client.get(server.url(&format!("/v1/runs/{run}/events"))).send().await.unwrap();
    let events = events.text().await.unwrap();
    let seen = events.split("\n\n").find(|event| event.contains("event: node_chunks")).unwrap();
    assert!(seen.contains(r#""node":"double","attempt":1,"chunks":["Hel",{"json":1}]"#), "{seen}");
}

#[tokio::test]
async fn a_worker_logs_and_its_lines_are_read_and_followed() {
    let server = TestServer::start().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({})).await;
    let lines = json!(["plain", { "message": "with more", "level": "warn", "at": "2026-01-31T09:00:00Z" }]);
    let said = server.post("/v1/tasks/logs", about(&task, json!({ "lines": lines }))).await.expect(200);
    assert_eq!(said, json!({ "standing": "held" }));

    let path = format!("/v1/runs/{run}/logs");
    let page = server.get_json(&path).await.expect(200);
    assert_eq!((&page["next"], &page["ended"]), (&Value::Null, &json!(false)));
    let logged = &page["logs"][0];
    assert_eq!((&logged["node"], &logged["attempt"]), (&json!("double"), &json!(1)));
    assert_eq!(logged["lines"][0]["message"], "plain");
    let second = json!({ "at": "2026-01-31T09:00:00.000Z", "level": "warn", "message": "with more" });
    assert_eq!(logged["lines"][1], second);
    for nothing in ["?node=other", "?attempt=2", &format!("?after={}", logged["seq"])] {
        let none = server.get_json(&format!("{path}{nothing}")).await.expect(200);
        assert_eq!(none["logs"], json!([]), "{nothing}");
    }

    // Follows the log from its beginning to the end of the run.
    let following = server.client.get(server.url(&path)).send().await.unwrap();
    let more = about(&task, json!({ "lines": ["x".repeat(5_000)] }));
    server.post("/v1/tasks/logs", more).await.expect(200);
    server.post("/v1/tasks/complete", about(&task, json!({ "output": 2 }))).await.expect(200);
    let stream = following.text().await.unwrap();
    let data: Vec<Value> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!(data.len(), 2, "{stream}");
    assert_eq!(data[0], *logged);
    let cut = data[1]["lines"][0]["message"].as_str().unwrap();
    assert!(cut.len() < 4_200 && cut.ends_with('…'), "a long line is cut off");
    let last = server.end(&run).await["last_seq"].clone();
    let after = server.client.get(server.url(&path)).header("last-event-id", last.as_u64().unwrap());
    assert_eq!(after.send().await.unwrap().status(), 204);
    assert_eq!(server.get_json(&path).await.expect(200)["ended"], true);
}

#[tokio::test]
async fn lines_that_make_no_sense_are_refused_and_a_lost_claim_logs_nothing() {
    let server = TestServer::start().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let task = server.claim_one(json!({})).await;
    for lines in
        [json!([]), json!([5]), json!([{ "message": "x", "level": "loud" }]), json!(vec!["x"; 1_001])]
    {
        let refused = server.post("/v1/tasks/logs", about(&task, json!({ "lines": lines }))).await;
        refused.problem(422, "invalid_body");
    }
    server.post("/v1/tasks/complete", about(&task, json!({ "output": 2 }))).await.expect(200);
    let late = about(&task, json!({ "lines": ["late"] }));
    server.post("/v1/tasks/logs", late).await.problem(409, "already_settled");
    assert_eq!(server.get_json(&format!("/v1/runs/{run}/logs")).await.expect(200)["logs"], json!([]));
    server.get_json("/v1/runs/run_01h0000000000000000000000g/logs").await.problem(404, "unknown_run");
}
