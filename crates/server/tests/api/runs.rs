//! Runs, patches, approvals and workflows.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{TestServer, hello, waiting};

#[tokio::test]
async fn a_run_is_accepted_and_ends() {
    let server = TestServer::start().await;
    let run = server.submit(hello(), json!({ "name": "Ada" })).await;
    let ended = server.end(&run).await;
    assert_eq!(ended["status"], "succeeded");
    assert_eq!(ended["output"], json!({ "greeting": "Hello, Ada!" }));
    assert_eq!(ended["nodes"]["greet"]["status"], "succeeded");
    let first = server.get(&format!("/v1/runs/{run}?at=1")).await.expect(200);
    assert_eq!(first["status"], "running");
    server.get(&format!("/v1/runs/{run}?at=99")).await.problem(400, "bad_request");
}

#[tokio::test]
async fn registered_workflows_have_versions() {
    let server = TestServer::start().await;
    let first = server.post("/v1/workflows", hello()).await.expect(200);
    assert_eq!((&first["name"], &first["version"]), (&json!("hello"), &json!(1)));
    assert_eq!(server.post("/v1/workflows", hello()).await.expect(200), first);
    let mut changed = hello();
    changed["nodes"]["greet"]["value"] = json!("hi");
    assert_eq!(server.post("/v1/workflows", changed).await.expect(200)["version"], 2);

    let run = server.post("/v1/runs", json!({ "workflow": "hello" })).await.expect(202);
    assert_eq!(server.end(run["run_id"].as_str().unwrap()).await["output"], "hi");
    let old = server.post("/v1/runs", json!({ "workflow": "hello", "version": 1 })).await.expect(202);
    assert_eq!(server.end(old["run_id"].as_str().unwrap()).await["output"]["greeting"], "Hello, world!");

    let shown = server.get("/v1/workflows/hello").await.expect(200);
    let versions: Vec<&Value> = shown["versions"].as_array().unwrap().iter().map(|v| &v["version"]).collect();
    assert_eq!(versions, [2, 1]);
    assert_eq!(shown["source"]["name"], "hello");
    assert_eq!(server.get("/v1/workflows/hello?version=1").await.expect(200)["version"], 1);
    assert_eq!(server.get("/v1/workflows").await.expect(200)["workflows"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn duplicate_submissions_at_once_are_one_run() {
    let server = TestServer::start().await;
    let body = json!({ "workflow": hello(), "input": { "name": "Ada" }, "idempotency_key": "k" });
    let answers = join_all((0..32).map(|_| server.post("/v1/runs", body.clone()))).await;
    let mut accepted = 0;
    let mut runs = std::collections::BTreeSet::new();
    for answer in answers {
        accepted += u32::from(answer.status == 202);
        assert!(answer.status == 200 || answer.status == 202, "{}", answer.body);
        runs.insert(answer.body["run_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((accepted, runs.len()), (1, 1));
    let run = runs.pop_first().unwrap();
    server.end(&run).await;
    assert_eq!(server.post("/v1/runs", body.clone()).await.expect(200)["run_id"], run);
    let mut other = body;
    other["input"] = json!({ "name": "Bob" });
    server.post("/v1/runs", other).await.problem(409, "idempotency_key_reused");
    assert_eq!(server.get("/v1/runs").await.expect(200)["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_are_paged() {
    let server = TestServer::start().await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(server.submit(hello(), Value::Null).await);
    }
    for run in &runs {
        server.end(run).await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/runs?limit=2".to_owned();
    loop {
        let page = server.get(&path).await.expect(200);
        seen.extend(
            page["runs"].as_array().unwrap().iter().map(|r| r["run_id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/runs?limit=2&cursor={next}");
    }
    runs.sort();
    runs.reverse();
    assert_eq!(seen, runs);
    let failed = server.get("/v1/runs?status=failed").await.expect(200);
    assert_eq!(failed["runs"], json!([]));
    let named = server.get("/v1/runs?workflow=hello&status=succeeded").await.expect(200);
    assert_eq!(named["runs"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn pause_resume_signal_cancel_retry() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    let path = |verb: &str| format!("/v1/runs/{run}/{verb}");
    assert_eq!(server.post(&path("pause"), json!({ "by": "ada" })).await.expect(200)["status"], "paused");
    server.post(&path("pause"), json!({})).await.problem(409, "wrong_status");
    assert_eq!(server.post(&path("resume"), json!({})).await.expect(200)["status"], "running");
    server.post(&path("signals/go"), json!({ "payload": { "n": 1 } })).await.expect(200);
    assert_eq!(server.end(&run).await["output"], json!({ "n": 1 }));
    server.post(&path("cancel"), json!({})).await.problem(409, "wrong_status");

    let run = server.submit(waiting(), Value::Null).await;
    // A cancel request may have no body.
    let cancelled = server.send(reqwest::Method::POST, &format!("/v1/runs/{run}/cancel"), None, vec![]).await;
    cancelled.expect(200);
    assert_eq!(server.end(&run).await["status"], "cancelled");
    server.post(&format!("/v1/runs/{run}/retry"), json!({})).await.expect(200);
    server.post(&format!("/v1/runs/{run}/signals/go"), json!({ "payload": 2 })).await.expect(200);
    assert_eq!(server.end(&run).await["output"], 2);
}

#[tokio::test]
async fn a_fork_keeps_what_was_before() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    server.post(&format!("/v1/runs/{run}/signals/go"), json!({ "payload": 7 })).await.expect(200);
    server.end(&run).await;
    let edits = json!([{ "op": "update_node", "id": "after", "node": { "value": "changed" } }]);
    let body = json!({ "from": "after", "edits": edits });
    let forked = server.post(&format!("/v1/runs/{run}/fork"), body).await.expect(202);
    assert_eq!(forked["kept"], json!(["wait"]));
    let ended = server.end(forked["run_id"].as_str().unwrap()).await;
    assert_eq!((&ended["output"], &ended["forked_from"]), (&json!("changed"), &json!(run)));
    server
        .post(&format!("/v1/runs/{run}/fork"), json!({ "from": "nope" }))
        .await
        .problem(422, "unknown_node");
}

#[tokio::test]
async fn patches_are_made_listed_and_undone() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    let path = format!("/v1/runs/{run}/patches");
    let ops = json!([{ "op": "update_node", "id": "after", "node": { "value": "patched" } }]);
    let dry = server.post(&path, json!({ "ops": ops, "dry_run": true })).await.expect(200);
    assert_eq!((&dry["patch"], &dry["version"]), (&Value::Null, &json!(2)));
    let made = server.post(&path, json!({ "ops": ops, "by": "ada", "reason": "why not" })).await.expect(200);
    let listed = server.get(&path).await.expect(200);
    assert_eq!(listed["patches"][0]["patch"], made["patch"]);
    assert_eq!(listed["patches"][0]["ops"], ops);
    server.post(&path, json!({ "ops": ops, "seen": 1 })).await.problem(409, "stale_version");
    server.post(&path, json!({ "ops": [{ "op": "remove_node", "id": "x" }] })).await.problem(422, "invalid");
    let undo = format!("{path}/{}/undo", made["patch"].as_str().unwrap());
    assert_eq!(server.post(&undo, json!({})).await.expect(200)["version"], 3);
    server.post(&undo, json!({})).await.problem(404, "unknown_patch");
}

#[tokio::test]
async fn approvals_are_listed_and_decided() {
    let server = TestServer::start().await;
    let definition = json!({
        "name": "ask",
        "nodes": { "ask": { "type": "hitl", "prompt": "ship it?", "input": { "json": 1 } } },
    });
    let run = server.submit(definition, Value::Null).await;
    let mut follow = server.fixture.engine().follow(run.parse().unwrap(), 0);
    let approval = loop {
        let events = follow.next().await.unwrap();
        if events.iter().any(|event| event.kind.name() == "node_waiting") {
            let listed = server.get(&format!("/v1/approvals?run={run}")).await.expect(200);
            break listed["approvals"][0].clone();
        }
    };
    assert_eq!(
        (&approval["prompt"], approval.get("payload")),
        (&json!("ship it?"), None),
        "no payloads in lists"
    );
    let path = format!("/v1/approvals/{}", approval["approval"].as_str().unwrap());
    assert_eq!(server.get(&path).await.expect(200)["payload"], json!({ "json": 1 }));
    let decision = json!({ "by": "ada", "comment": "yes" });
    server.post(&format!("{path}/approve"), decision).await.expect(200);
    assert_eq!(server.end(&run).await["status"], "succeeded");
    server.post(&format!("{path}/reject"), json!({})).await.problem(409, "not_pending");
    assert_eq!(server.get("/v1/approvals").await.expect(200)["approvals"], json!([]));
    let all = server.get("/v1/approvals?all=true").await.expect(200);
    assert_eq!(all["approvals"][0]["status"], "approved");
}

#[tokio::test]
async fn health_queues_and_validation() {
    let server = TestServer::start().await;
    server.get("/healthz").await.expect(200);
    server.get("/readyz").await.expect(200);
    assert!(server.get("/v1/queues").await.expect(200)["queues"].is_array());
    assert_eq!(server.post("/v1/validate", hello()).await.expect(200)["valid"], true);
    let invalid =
        server.post("/v1/validate", json!({ "name": "x", "nodes": {}, "nope": 1 })).await.expect(200);
    assert_eq!(invalid["valid"], false);
    assert!(!invalid["problems"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn metrics_are_counted() {
    let server = TestServer::start().await;
    let run = server.submit(crate::harness::hello(), json!({})).await;
    server.end(&run).await;
    server.submit(crate::harness::one_function(json!({})), json!({ "n": 1 })).await;
    server.get("/v1/runs/nope").await.problem(400, "invalid_id");
    let response = server.client.get(server.url("/metrics")).send().await.unwrap();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    let text = response.text().await.unwrap();
    for line in [
        "switchyard_runs_in_flight 1",
        "switchyard_runs_accepted_total 2",
        r#"switchyard_runs_ended_total{status="succeeded"} 1"#,
        r#"switchyard_steps_total{outcome="succeeded"} 1"#,
        r#"switchyard_claims_total{kind="transform"} 1"#,
        r#"switchyard_queue_wait_seconds_count{kind="transform"} 1"#,
        r#"switchyard_step_duration_seconds_count{kind="transform",outcome="succeeded"} 1"#,
        // Two runs accepted, one step started and succeeded, one run ended.
        "switchyard_archive_events_total 5",
        "switchyard_archive_pending_events 0",
        r#"switchyard_queue_depth{queue="function:double",priority="normal"} 1"#,
        r#"switchyard_http_requests_total{route="/v1/runs",method="POST",status="202"} 2"#,
        r#"switchyard_http_requests_total{route="/v1/runs/{run}",method="GET",status="400"} 1"#,
        "switchyard_tasks_claimed_total 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_run_behind_a_full_gate_says_that_it_is_queued() {
    let server = TestServer::start().await;
    let body = json!({ "workflow": waiting(), "concurrency": { "key": "k", "limit": 1 } });
    assert_eq!(server.post("/v1/runs", body.clone()).await.expect(202)["status"], "running");
    assert_eq!(server.post("/v1/runs", body).await.expect(202)["status"], "queued");
}

/// The CLI sends a bundled definition for a file that names other files as children.
#[tokio::test]
async fn a_bundled_definition_is_accepted_whole() {
    let server = TestServer::start().await;
    let child = "name: child\nnodes:\n  double: {type: transform, value: '${{ input.n * 2 }}'}\n";
    let parent = "name: parent\nnodes:\n  call: {type: workflow, file: child.yaml, input: {n: 21}}\n";
    let load = |_: &std::path::Path| Ok(child.as_bytes().to_vec());
    let bundled = switchyard_lang::Program::compile_bundled(
        "parent.yaml",
        parent.as_bytes(),
        std::path::Path::new("/w"),
        &load,
    )
    .unwrap();
    let definition: Value = serde_json::from_str(&bundled.canonical).unwrap();
    let run = server.submit(definition.clone(), Value::Null).await;
    assert_eq!(server.end(&run).await["output"], 42);
    let registered = server.post("/v1/workflows", definition).await.expect(200);
    assert_eq!(registered["definition"], bundled.hash.to_string());
}

#[tokio::test]
async fn a_run_can_start_later_and_have_a_priority() {
    let server = TestServer::start().await;
    let body = json!({ "workflow": hello(), "delay": "1h", "priority": 9 });
    let accepted = server.post("/v1/runs", body).await.expect(202);
    assert_eq!(accepted["status"], "queued");
    let run = accepted["run_id"].as_str().unwrap();
    let shown = server.get(&format!("/v1/runs/{run}")).await.expect(200);
    assert_eq!((&shown["status"], &shown["priority"]), (&json!("queued"), &json!(9)));
    let start_at = shown["start_at"].as_str().unwrap();
    assert_eq!(shown["waiting"], json!([{ "for": "start", "at": start_at }]));
    let events = format!("/v1/runs/{run}/events?limit=1");
    let first = server.get_json(&events).await.expect(200);
    assert_eq!(first["events"][0]["start_at"], start_at, "a moment as people read it");
    let cancel = server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    cancel.expect(200);
    assert_eq!(server.end(run).await["status"], "cancelled");

    let body = json!({ "workflow": hello(), "start_at": "2020-01-31T09:00:00+01:00" });
    let past = server.post("/v1/runs", body).await.expect(202);
    assert_eq!(server.end(past["run_id"].as_str().unwrap()).await["status"], "succeeded");
}
