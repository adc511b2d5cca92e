//! Postgres goes away.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::yard::{Yard, assert_try_later};

/// Moves on by itself to a gate, a while after it was accepted.
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

/// Steps in flight go on; a decision is refused, because it could be lost, and can be made when the archive is back.
#[tokio::test]
async fn runs_go_on_without_the_archive_and_are_archived_when_it_is_back() {
    let mut yard = Yard::start();
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(yard.submitted_with(&sleeper(), &json!({})).await);
    }
    for run in &runs {
        yard.until_at(run, "first", "waiting").await;
    }

    yard.postgres.stop();
    assert_try_later(yard.submit().await, "store_unavailable").await;
    assert_try_later(yard.get("/readyz").await, "archive_unavailable").await;
    // Behind the sleep there is a step that a worker has to execute.
    for run in &runs {
        yard.until_at(run, "second", "waiting").await;
    }
    for run in &runs[..3] {
        let response = yard.post(&format!("/v1/runs/{run}/signals/second"), &json!({})).await;
        assert_try_later(response, "store_unavailable").await;
    }
    assert!(yard.metric("switchyard_archive_pending_events").await.unwrap() > 0.0);
    yard.assert_all_run();

    yard.postgres.start_again();
    yard.until_ready().await;
    for run in &runs {
        yard.signal(run, "second").await;
    }
    let late = yard.submitted().await;
    yard.signal(&late, "first").await;
    yard.signal(&late, "second").await;
    runs.push(late);
    for run in &runs {
        yard.until(run, |view| view["status"] == "succeeded").await;
        yard.assert_whole(run).await;
    }
    yard.assert_all_run();
}

/// A key that was used a moment ago still counts; a key that was never seen cannot be checked.
#[tokio::test]
async fn a_key_that_was_just_used_still_counts() {
    let mut yard = Yard::start();
    let key: Value = yard.post("/v1/keys", &json!({ "name": "ada" })).await.json().await.unwrap();
    let key = key["key"].as_str().unwrap().to_owned();
    yard.send_key(&key);
    let run = yard.submitted().await;
    yard.until_at(&run, "first", "waiting").await;
    yard.postgres.stop();
    yard.until_at(&run, "first", "waiting").await;
    let changed = format!("{}{}", &key[..key.len() - 1], if key.ends_with('0') { '1' } else { '0' });
    yard.send_key(&changed);
    assert_eq!(yard.get(&format!("/v1/runs/{run}")).await.status(), StatusCode::UNAUTHORIZED);
    yard.send_key("swk_0123456789abcdef_0");
    assert_try_later(yard.get(&format!("/v1/runs/{run}")).await, "store_unavailable").await;
}
