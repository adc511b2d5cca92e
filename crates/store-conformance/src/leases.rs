//! Claims last as long as somebody keeps them alive.

use std::time::Duration;

use switchyard_core::Payload;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{RunStatus, Settled, TaskOutcome};
use switchyard_core::yard::{Lane, Standing};
use switchyard_store::Clock;

use crate::place::{LEASE, claim_of};
use crate::{Backend, Place};

pub async fn all(backend: &dyn Backend) {
    a_silent_worker_loses_its_claim(&backend.open().await).await;
    a_heartbeat_keeps_a_claim(&backend.open().await).await;
    a_node_that_takes_its_workers_down_is_stopped(&backend.open().await).await;
    queues_can_be_counted(&backend.open().await).await;
}

async fn silence(place: &Place) -> usize {
    place.clock.advance(LEASE);
    place.hot.reclaim().await.expect("answered")
}

async fn a_silent_worker_loses_its_claim(place: &Place) {
    let run = place.start(&Sketch::chain(1)).await;
    let lost = place.claim_node("n0").await;
    assert_eq!(silence(place).await, 1);
    let again = place.claim_node("n0").await;
    assert_eq!(again.attempt, lost.attempt, "a lost claim is not a failed attempt");
    assert_eq!(place.hot.heartbeat(&[claim_of(&lost)], None).await.expect("answered"), [Standing::Lost]);
    assert_eq!(place.settle(&lost, TaskOutcome::Succeeded(Payload::null())).await, Settled::Stale);
    place.succeed(&again).await;
    place.ended(run, RunStatus::Succeeded).await;
    assert_eq!(silence(place).await, 0, "nothing is left to take back");
}

async fn a_heartbeat_keeps_a_claim(place: &Place) {
    place.start(&Sketch::chain(1)).await;
    let held = place.claim_node("n0").await;
    for _ in 0..5 {
        place.clock.advance(LEASE - Duration::from_secs(1));
        let standing = place.hot.heartbeat(&[claim_of(&held)], Some(LEASE)).await.expect("answered");
        assert_eq!(standing, [Standing::Held]);
        assert_eq!(place.hot.reclaim().await, Ok(0));
    }
    place.succeed(&held).await;
}

async fn a_node_that_takes_its_workers_down_is_stopped(place: &Place) {
    let run = place.start(&Sketch::chain(1)).await;
    for delivery in 1.. {
        place.claim_node("n0").await;
        assert_eq!(silence(place).await, 1);
        if place.hot.snapshot(run).await.expect("answered").is_none() {
            assert!(delivery > 1, "one lost worker is bad luck");
            break;
        }
        assert!(delivery < 100, "it never stops");
    }
    place.ended(run, RunStatus::Failed).await;
    let record = place.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(&*record.error.expect("an error").code, "poisoned");
}

async fn queues_can_be_counted(place: &Place) {
    for _ in 0..3 {
        place.start(&Sketch::chain(1)).await;
    }
    place.claim_node("n0").await;
    let depths = place.hot.queues().await.expect("answered");
    let work = depths.iter().find(|depth| &*depth.queue == "work").expect("the queue");
    let [high, normal, low] = work.lanes;
    assert_eq!((normal.waiting, normal.claimed, normal.oldest), (2, 1, Some(place.clock.now())));
    assert_eq!([high, low], [Lane::default(); 2]);
}
