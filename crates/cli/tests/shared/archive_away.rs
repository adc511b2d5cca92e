//! Postgres stops while processes run.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, assert_try_later};

/// A workflow that sleeps for a while and then waits for a signal.
fn sleeper() -> Value {
    json!({
        "name": "sleeper",
        "nodes": {
            "before": { "type": "transform", "value": 1 },
            "first": { "type": "sleep", "duration": "5s", "needs": ["before"] },
            "between": { "type": "transform", "needs": ["first"], "value": 2 },
            "second": { "type": "wait", "signal": "second", "needs": ["between"] },
            "after": { "type": "transform", "needs": ["second"], "value": 3 },
        },
    })
}

/// Steps in flight continue; a decision is refused, because it could be lost, until the archive is back.
#[tokio::test]
async fn runs_go_on_without_the_archive_and_are_archived_when_it_is_back() {
    let mut fixture = Fixture::start();
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(fixture.submitted_with(&sleeper(), &json!({})).await);
    }
    for run in &runs {
        fixture.until_at(run, "first", "waiting").await;
    }

    fixture.postgres.stop();
    assert_try_later(fixture.submit().await, "store_unavailable").await;
    assert_try_later(fixture.get("/readyz").await, "archive_unavailable").await;
    // After the sleep, a worker has to execute a step.
    for run in &runs {
        fixture.until_at(run, "second", "waiting").await;
    }
    for run in &runs[..3] {
        let response = fixture.post(&format!("/v1/runs/{run}/signals/second"), &json!({})).await;
        assert_try_later(response, "store_unavailable").await;
    }
    assert!(fixture.metric("switchyard_archive_pending_events").await.unwrap() > 0.0);
    fixture.assert_all_run();

    fixture.postgres.start_again();
    fixture.until_ready().await;
    for run in &runs {
        fixture.signal(run, "second").await;
    }
    let late = fixture.submitted().await;
    fixture.signal(&late, "first").await;
    fixture.signal(&late, "second").await;
    runs.push(late);
    for run in &runs {
        fixture.until(run, |view| view["status"] == "succeeded").await;
        fixture.assert_whole(run).await;
    }
    fixture.assert_all_run();
}

/// The API still accepts a recently used key; it cannot check a key that it has never seen.
#[tokio::test]
async fn a_key_that_was_just_used_still_counts() {
    let mut fixture = Fixture::start();
    let key: Value = fixture.post("/v1/keys", &json!({ "name": "ada" })).await.json().await.unwrap();
    let key = key["key"].as_str().unwrap().to_owned();
    fixture.send_key(&key);
    let run = fixture.submitted().await;
    fixture.until_at(&run, "first", "waiting").await;
    fixture.postgres.stop();
    fixture.until_at(&run, "first", "waiting").await;
    let changed = format!("{}{}", &key[..key.len() - 1], if key.ends_with('0') { '1' } else { '0' });
    fixture.send_key(&changed);
    assert_eq!(fixture.get(&format!("/v1/runs/{run}")).await.status(), StatusCode::UNAUTHORIZED);
    fixture.send_key("swk_0123456789abcdef_0");
    assert_try_later(fixture.get(&format!("/v1/runs/{run}")).await, "store_unavailable").await;
}
