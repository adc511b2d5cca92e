//! Redis goes away.

use serde_json::Value;

use crate::yard::{Yard, assert_try_later};

#[tokio::test]
async fn everybody_waits_for_redis_and_goes_on() {
    let mut yard = Yard::start();
    let done = yard.submitted().await;
    yard.signal(&done, "first").await;
    yard.signal(&done, "second").await;
    yard.until(&done, |view| view["status"] == "succeeded").await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(yard.submitted().await);
    }
    for run in &runs {
        yard.until_at(run, "first", "waiting").await;
    }

    yard.redis.stop();
    assert_try_later(yard.submit().await, "store_unavailable").await;
    assert_try_later(yard.get("/readyz").await, "hot_store_unavailable").await;
    // What has ended is read from the archive; what is under way is further than the archive may know.
    let view: Value = yard.get(&format!("/v1/runs/{done}")).await.json().await.unwrap();
    assert_eq!(view["status"], "succeeded");
    assert_try_later(yard.get(&format!("/v1/runs/{}", runs[0])).await, "store_unavailable").await;
    let list: Value = yard.get("/v1/runs").await.json().await.unwrap();
    assert_eq!(list["runs"].as_array().unwrap().len(), 7);
    assert_eq!(yard.metric("switchyard_redis_up").await, Some(0.0));
    assert_eq!(yard.metric("switchyard_runs_in_flight").await, None);
    yard.assert_all_run();

    yard.redis.start_again();
    yard.until_ready().await;
    for run in &runs {
        yard.signal(run, "first").await;
        yard.signal(run, "second").await;
    }
    runs.push(yard.submitted().await);
    yard.signal(&runs[6], "first").await;
    yard.signal(&runs[6], "second").await;
    for run in &runs {
        yard.until(run, |view| view["status"] == "succeeded").await;
        yard.assert_whole(run).await;
    }
    assert_eq!(yard.metric("switchyard_redis_up").await, Some(1.0));
    assert!(yard.metric("switchyard_redis_reconnects_total").await.unwrap() > 0.0);
    yard.assert_all_run();
}
