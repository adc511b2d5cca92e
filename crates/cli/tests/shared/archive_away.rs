//! Postgres goes away.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::yard::{Yard, assert_try_later};

#[tokio::test]
async fn runs_go_on_without_the_archive_and_are_archived_when_it_is_back() {
    let mut yard = Yard::start();
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(yard.submitted().await);
    }
    for run in &runs {
        yard.until_at(run, "first", "waiting").await;
    }

    yard.postgres.stop();
    assert_try_later(yard.submit().await, "store_unavailable").await;
    assert_try_later(yard.get("/readyz").await, "archive_unavailable").await;
    for run in &runs {
        yard.signal(run, "first").await;
    }
    // Between the gates there is a step that a worker has to execute.
    for run in &runs {
        yard.until_at(run, "second", "waiting").await;
    }
    // This may be their end before the answer is made, and then the end is not archived yet: that it was done is said.
    for run in &runs[..3] {
        let response = yard.post(&format!("/v1/runs/{run}/signals/second"), &json!({})).await;
        if !response.status().is_success() {
            assert_try_later(response, "done_and_unread").await;
        }
    }
    assert!(yard.metric("switchyard_archive_pending_events").await.unwrap() > 0.0);
    yard.assert_all_run();

    yard.postgres.start_again();
    yard.until_ready().await;
    for run in &runs[3..] {
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

/// Whoever was let in a moment ago can go on with what is under way; whoever was never seen cannot be checked.
#[tokio::test]
async fn a_key_that_was_just_used_still_counts() {
    let mut yard = Yard::start();
    let key: Value = yard.post("/v1/keys", &json!({ "name": "ada" })).await.json().await.unwrap();
    let key = key["key"].as_str().unwrap().to_owned();
    yard.send_key(&key);
    let run = yard.submitted().await;
    yard.until_at(&run, "first", "waiting").await;
    yard.postgres.stop();
    yard.signal(&run, "first").await;
    yard.until_at(&run, "second", "waiting").await;
    let changed = format!("{}{}", &key[..key.len() - 1], if key.ends_with('0') { '1' } else { '0' });
    yard.send_key(&changed);
    assert_eq!(yard.get(&format!("/v1/runs/{run}")).await.status(), StatusCode::UNAUTHORIZED);
    yard.send_key("swk_0123456789abcdef_0");
    assert_try_later(yard.get(&format!("/v1/runs/{run}")).await, "store_unavailable").await;
}
