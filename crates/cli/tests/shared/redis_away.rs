//! Redis stops while processes run.

use serde_json::Value;

use crate::fixture::{Fixture, assert_try_later};

#[tokio::test]
async fn everybody_waits_for_redis_and_goes_on() {
    let mut fixture = Fixture::start();
    let done = fixture.submitted().await;
    fixture.signal(&done, "first").await;
    fixture.signal(&done, "second").await;
    fixture.until(&done, |view| view["status"] == "succeeded").await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(fixture.submitted().await);
    }
    for run in &runs {
        fixture.until_at(run, "first", "waiting").await;
    }

    fixture.redis.stop();
    assert_try_later(fixture.submit().await, "store_unavailable").await;
    assert_try_later(fixture.get("/readyz").await, "hot_store_unavailable").await;
    // Ended runs are read from the archive; unfinished runs may be further than the archive knows.
    let view: Value = fixture.get(&format!("/v1/runs/{done}")).await.json().await.unwrap();
    assert_eq!(view["status"], "succeeded");
    assert_try_later(fixture.get(&format!("/v1/runs/{}", runs[0])).await, "store_unavailable").await;
    let list: Value = fixture.get("/v1/runs").await.json().await.unwrap();
    assert_eq!(list["runs"].as_array().unwrap().len(), 7);
    assert_eq!(fixture.metric("switchyard_redis_up").await, Some(0.0));
    assert_eq!(fixture.metric("switchyard_runs_in_flight").await, None);
    fixture.assert_all_run();

    fixture.redis.start_again();
    fixture.until_ready().await;
    for run in &runs {
        fixture.signal(run, "first").await;
        fixture.signal(run, "second").await;
    }
    runs.push(fixture.submitted().await);
    fixture.signal(&runs[6], "first").await;
    fixture.signal(&runs[6], "second").await;
    for run in &runs {
        fixture.until(run, |view| view["status"] == "succeeded").await;
        fixture.assert_whole(run).await;
    }
    assert_eq!(fixture.metric("switchyard_redis_up").await, Some(1.0));
    assert!(fixture.metric("switchyard_redis_reconnects_total").await.unwrap() > 0.0);
    fixture.assert_all_run();
}
