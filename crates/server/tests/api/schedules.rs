//! `/v1/schedules`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestServer, hello, waiting};

/// Every full hour. The clock of the tests stands at 2023-11-14T22:13:20Z.
const HOURLY: &str = "0 * * * *";

async fn scheduled(server: &TestServer, workflow: Value, more: Value) -> Value {
    server.post("/v1/workflows", workflow.clone()).await.expect(200);
    let mut body = json!({ "workflow": workflow["name"], "cron": HOURLY });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    server.put("/v1/schedules/tick", body).await.expect(200)
}

#[tokio::test]
async fn a_schedule_is_put_shown_replaced_paused_and_removed() {
    let (server, _clock) = TestServer::with_clock().await;
    let more = json!({ "input": { "name": "Ada" }, "time_zone": "Europe/Berlin", "jitter": "1m30s" });
    let put = scheduled(&server, hello(), more).await;
    assert_eq!(put["next_at"], "2023-11-14T23:00:00.000Z");
    assert_eq!(
        (&put["input"], &put["jitter"], &put["overlap"], &put["catch_up"], &put["paused"]),
        (&json!({ "name": "Ada" }), &json!("1m30s"), &json!("skip"), &json!("last"), &json!(false))
    );
    let shown = server.get("/v1/schedules/tick?upcoming=3").await.expect(200);
    let starts: Vec<&str> = shown["upcoming"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    assert_eq!(starts.len(), 3);
    assert!(
        starts[0].starts_with("2023-11-14T23:0") && starts[2].starts_with("2023-11-15T01:0"),
        "{starts:?}"
    );
    let replaced =
        json!({ "workflow": "hello", "cron": "30 6 * * 1", "overlap": "queue", "catch_up": "all" });
    server.put("/v1/schedules/tick", replaced).await.expect(200);
    let listed = server.get("/v1/schedules").await.expect(200);
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed["schedules"][0]["cron"], &listed["schedules"][0]["overlap"]),
        (&json!("30 6 * * 1"), &json!("queue"))
    );
    assert_eq!(listed["schedules"][0].get("input"), None, "no payloads in lists");
    assert_eq!(server.get("/v1/schedules/tick").await.expect(200)["input"], json!({}));
    assert_eq!(server.post("/v1/schedules/tick/pause", json!({})).await.expect(200)["paused"], true);
    assert_eq!(server.post("/v1/schedules/tick/resume", json!({})).await.expect(200)["paused"], false);
    server.delete("/v1/schedules/tick").await.expect(204);
    server.delete("/v1/schedules/tick").await.problem(404, "unknown_schedule");
    assert_eq!(server.get("/v1/schedules").await.expect(200)["schedules"], json!([]));
}

#[tokio::test]
async fn what_could_never_start_is_refused() {
    let server = TestServer::start().await;
    let typed = json!({
        "name": "typed",
        "input": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } },
        "nodes": { "a": { "type": "transform", "value": 1 } },
    });
    server.post("/v1/workflows", typed).await.expect(200);
    let valid = json!({ "workflow": "typed", "cron": HOURLY, "input": { "name": "Ada" } });
    for (field, value, status, code) in [
        ("cron", json!("every day"), 422, "invalid_schedule"),
        ("cron", json!("0 0 30 2 *"), 422, "invalid_schedule"),
        ("cron", json!("* ".repeat(3_000)), 422, "too_long"),
        ("time_zone", json!("Mars/Olympus"), 422, "invalid_schedule"),
        ("jitter", json!("a while"), 422, "invalid_body"),
        ("overlap", json!("maybe"), 422, "invalid_body"),
        ("workflow", json!("nope"), 404, "unknown_workflow"),
        ("version", json!(7), 404, "unknown_workflow"),
        ("input", json!({ "name": 5 }), 422, "invalid"),
        ("input", json!({}), 422, "invalid"),
        ("nope", json!(1), 422, "invalid_body"),
    ] {
        let mut body = valid.clone();
        body[field] = value.clone();
        let answer = server.put("/v1/schedules/tick", body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.body["code"].as_str()),
            (status, Some(code)),
            "{field}: {value} {}",
            answer.body
        );
    }
    server.put("/v1/schedules/a%20b", valid.clone()).await.problem(422, "invalid_schedule");
    assert_eq!(server.get("/v1/schedules").await.expect(200)["schedules"], json!([]));
    server.put("/v1/schedules/tick", valid).await.expect(200);
}

#[tokio::test]
async fn a_backfill_starts_each_tick_once_and_says_where_to_go_on() {
    let (server, _clock) = TestServer::with_clock().await;
    scheduled(&server, hello(), json!({})).await;
    let span = json!({ "from": "2023-01-01T00:00:00Z", "until": "2023-01-01T02:30:00Z" });
    let first = server.post("/v1/schedules/tick/backfill", span.clone()).await.expect(200);
    let runs = first["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &first["next"]), (3, &Value::Null));
    assert!(runs.iter().all(|run| run["started"] == true), "{first}");
    assert_eq!(runs[2]["tick"], "2023-01-01T02:00:00.000Z");
    let again = server.post("/v1/schedules/tick/backfill", span).await.expect(200);
    assert!(again["runs"].as_array().unwrap().iter().all(|run| run["started"] == false), "{again}");
    assert_eq!(again["runs"][1]["run_id"], runs[1]["run_id"]);
    let long = json!({ "from": "2023-01-01T00:00:00Z", "until": "2023-03-01T00:00:00Z" });
    let part = server.post("/v1/schedules/tick/backfill", long).await.expect(200);
    assert_eq!(part["runs"].as_array().unwrap().len(), 1_000);
    assert_eq!(part["next"], "2023-02-11T16:00:00.000Z");
}

#[tokio::test]
async fn a_schedule_is_started_now_and_its_starts_are_shown() {
    let (server, _clock) = TestServer::with_clock().await;
    let lines = json!({ "cron": "0 9 * * *\n@every 10s", "catch_up": "all", "jitter": "1s", "paused": true });
    scheduled(&server, waiting(), lines).await;
    let started = server.post("/v1/schedules/tick/run", json!({})).await.expect(202);
    let shown = server.get("/v1/schedules/tick?starts=5").await.expect(200);
    assert_eq!(
        (&shown["cron"], &shown["catch_up"], &shown["jitter"]),
        (&json!("0 9 * * *\n@every 10s"), &json!("all"), &json!("1s"))
    );
    let start = &shown["starts"][0];
    assert_eq!(
        (&start["outcome"], &start["run_id"], &start["by"]),
        (&json!("started"), &started["run_id"], &json!("api"))
    );
    server.post("/v1/schedules/nope/run", json!({})).await.problem(404, "unknown_schedule");
    server.get("/v1/schedules/tick?starts=101").await.problem(400, "invalid_query");
}

#[tokio::test]
async fn a_tick_starts_a_run() {
    let (server, clock) = TestServer::with_clock().await;
    scheduled(&server, waiting(), json!({})).await;
    clock.advance(Duration::from_secs(60 * 60));
    // The background duty may already have started the tick.
    server.fixture.engine().start_due().await.unwrap();
    let shown = server.get("/v1/schedules/tick").await.expect(200);
    let run = shown["last_run"].as_str().unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(server.get(&format!("/v1/runs/{run}")).await.expect(200)["workflow"], "waiting");
    assert_eq!(shown["next_at"], "2023-11-15T00:00:00.000Z");
}
