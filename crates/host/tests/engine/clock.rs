//! A system clock that is set while runs are in flight.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchyard_core::Timestamp;
use switchyard_core::in_flight::Want;
use switchyard_runtime::duties;
use switchyard_store::{Clock, ManualClock};
use tokio_util::sync::CancellationToken;

use crate::support::TestEngine;

const HOUR: Duration = Duration::from_secs(3600);
const LEASE: Duration = Duration::from_secs(30);
const EVERY: Duration = Duration::from_secs(5);

/// The clock was an hour ahead and is corrected: duties that run every few seconds do not pause for an hour.
#[tokio::test]
async fn silent_workers_are_noticed_after_the_clock_was_set_back() {
    let clock = ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let fixture = TestEngine::idle(|options| options.clock = Arc::new(clock.clone())).await;
    let engine = fixture.engine();
    let stop = CancellationToken::new();
    let duty = tokio::spawn(duties::reclaim_forever(engine.clone(), EVERY, stop.clone()));
    tokio::task::yield_now().await;

    clock.set(clock.now().minus(HOUR));
    fixture.start("name: w\nnodes: {a: {type: function, function: elsewhere}}", json!({})).await;
    let want = Want { worker: "w".into(), queues: ["function*".into()].into(), max: 1, lease: Some(LEASE) };
    let (_, tasks) = engine.step(Vec::new(), &want).await.unwrap();
    assert_eq!(tasks.len(), 1);
    clock.advance(LEASE);
    // Each pass of the duty advances the clock by one `EVERY`.
    for _ in 0..20 {
        clock.advance(EVERY);
        tokio::task::yield_now().await;
    }
    let (_, again) = engine.step(Vec::new(), &want).await.unwrap();
    assert_eq!(again.len(), 1, "the task of the silent worker is handed out again");
    stop.cancel();
    duty.await.unwrap();
}
