//! Rebuilding the store from the archive (I6, I12).

use std::time::Duration;

use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Run, RunStatus, TaskOutcome, WaitFor};
use switchyard_store::Clock;

use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    a_run_goes_on_where_its_history_ends(&backend.open().await, &backend.open().await).await;
    restoring_what_is_here_changes_nothing(&backend.open().await).await;
}

fn sketch() -> Sketch {
    Sketch::new()
        .node("done", &[])
        .node("held", &[])
        .node("asleep", &[])
        .node("after", &["done", "held", "asleep"])
}

/// The second store gets only the history that the first one wrote.
async fn a_run_goes_on_where_its_history_ends(lost: &Fixture, fresh: &Fixture) {
    let run = lost.start(&sketch()).await;
    let tasks = lost.claim(3).await;
    lost.succeed(&tasks[0]).await;
    let until = lost.clock.now().plus(Duration::from_secs(5));
    lost.settle(&tasks[2], TaskOutcome::Waiting(WaitFor::Timer { until })).await;

    let events = lost.events(run).await;
    fresh.archive.append(events.clone()).await.expect("the archive survived");
    let ir = fresh.learn(&sketch()).await;
    let rebuilt = Run::replay(&events, &|_| Some(ir.clone())).expect("a whole history");
    fresh.hot.restore(vec![rebuilt]).await.expect("restored");

    let again = fresh.claim_node("held").await;
    assert_eq!((again.attempt, again.claim), (1, 2), "who held it is gone");
    fresh.succeed(&again).await;
    fresh.nothing_to_claim().await;
    fresh.clock.advance(Duration::from_secs(5));
    fresh.hot.fire_timers().await.expect("timers fire");
    fresh.pass("after").await;
    fresh.ended(run, RunStatus::Succeeded).await;
}

async fn restoring_what_is_here_changes_nothing(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let held = fixture.claim_node("n0").await;
    let copy = fixture.state(run).await;
    fixture.hot.restore(vec![copy]).await.expect("answered");
    fixture.nothing_to_claim().await;
    fixture.succeed(&held).await;
    fixture.ended(run, RunStatus::Succeeded).await;
}
