//! What the holder of a claim says while it holds it: checkpoints and chunks.

use serde_json::json;
use switchyard_core::Payload;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{CHUNKS_MAX, EventKind, Progress, Refusal, RunStatus, Settled, Task, TaskOutcome};
use switchyard_store::StoreError;

use crate::place::{LEASE, claim_of, passing_failure};
use crate::{Backend, Place};

pub async fn all(backend: &dyn Backend) {
    a_checkpoint_is_read_back_by_the_next_worker(&backend.open().await).await;
    a_checkpoint_is_read_back_by_the_next_attempt(&backend.open().await).await;
    a_checkpoint_does_not_outlive_its_node(&backend.open().await).await;
    chunks_are_events_in_order(&backend.open().await).await;
    a_claim_that_does_not_count_says_nothing(&backend.open().await).await;
    chunks_are_bounded(&backend.open().await).await;
}

fn value(n: u32) -> Payload {
    Payload::from_value(&json!({ "page": n }))
}

async fn say(place: &Place, task: &Task, progress: Progress) -> Settled {
    place.hot.progress(&claim_of(task), progress).await.expect("answered")
}

async fn keep(place: &Place, task: &Task, n: u32) {
    assert_eq!(say(place, task, Progress::Checkpoint(value(n))).await, Settled::Applied);
}

async fn a_checkpoint_is_read_back_by_the_next_worker(place: &Place) {
    let run = place.start(&Sketch::chain(1)).await;
    let lost = place.claim_node("n0").await;
    assert_eq!(lost.checkpoint, None);
    keep(place, &lost, 1).await;
    keep(place, &lost, 2).await;
    // It does not extend the lease: that is what heartbeats are for.
    place.clock.advance(LEASE);
    assert_eq!(place.hot.reclaim().await, Ok(1));
    let next = place.claim_node("n0").await;
    assert_eq!((next.attempt, next.checkpoint.clone()), (lost.attempt, Some(value(2))), "the newest counts");
    assert_eq!(place.settle(&next, TaskOutcome::HandedBack).await, Settled::Applied);
    let again = place.claim_node("n0").await;
    assert_eq!(again.checkpoint, Some(value(2)));
    place.succeed(&again).await;
    place.ended(run, RunStatus::Succeeded).await;
}

async fn a_checkpoint_is_read_back_by_the_next_attempt(place: &Place) {
    let mut sketch = Sketch::chain(1);
    sketch.nodes[0].max_attempts = 2;
    place.start(&sketch).await;
    let first = place.claim_node("n0").await;
    keep(place, &first, 5).await;
    assert_eq!(place.settle(&first, passing_failure()).await, Settled::Applied);
    place.clock.advance(LEASE * 1_000);
    place.hot.fire_timers().await.expect("answered");
    let second = place.claim_node("n0").await;
    assert_eq!((second.attempt, second.checkpoint), (2, Some(value(5))));
}

async fn a_checkpoint_does_not_outlive_its_node(place: &Place) {
    let run = place.start(&Sketch::chain(2)).await;
    let task = place.claim_node("n0").await;
    keep(place, &task, 1).await;
    place.succeed(&task).await;
    assert_eq!(place.state(run).await.node(task.ix).said, None);
    assert_eq!(place.claim_node("n1").await.checkpoint, None, "it is its own node's alone");
}

async fn chunks_are_events_in_order(place: &Place) {
    let run = place.start(&Sketch::chain(1)).await;
    let task = place.claim_node("n0").await;
    for part in [vec![value(1), value(2)], vec![value(3)]] {
        assert_eq!(say(place, &task, Progress::Chunks(part)).await, Settled::Applied);
    }
    place.succeed(&task).await;
    let mut seen = Vec::new();
    for event in place.events(run).await {
        if let EventKind::NodeChunks { node, attempt, chunks } = event.kind {
            assert_eq!((&*node, attempt), ("n0", 1));
            seen.extend(chunks);
        }
    }
    assert_eq!(seen, [value(1), value(2), value(3)]);
}

async fn a_claim_that_does_not_count_says_nothing(place: &Place) {
    let run = place.start(&Sketch::chain(2)).await;
    let lost = place.claim_node("n0").await;
    place.clock.advance(LEASE);
    assert_eq!(place.hot.reclaim().await, Ok(1));
    let held = place.claim_node("n0").await;
    let before = place.state(run).await.seq;
    assert_eq!(say(place, &lost, Progress::Checkpoint(value(1))).await, Settled::Stale);
    assert_eq!(say(place, &lost, Progress::Chunks(vec![value(1)])).await, Settled::Stale);
    assert_eq!(place.state(run).await.seq, before, "nothing has changed");
    place.succeed(&held).await;
    assert_eq!(say(place, &held, Progress::Checkpoint(value(1))).await, Settled::Duplicate);
    place.pass("n1").await;
    assert_eq!(say(place, &held, Progress::Checkpoint(value(1))).await, Settled::Stale, "the run has ended");
}

async fn chunks_are_bounded(place: &Place) {
    let run = place.start(&Sketch::chain(1)).await;
    let task = place.claim_node("n0").await;
    assert_eq!(say(place, &task, Progress::Chunks(vec![value(1)])).await, Settled::Applied);
    let flood = Progress::Chunks(vec![value(1); CHUNKS_MAX as usize]);
    let refused = place.hot.progress(&claim_of(&task), flood).await;
    assert_eq!(refused, Err(StoreError::Refused(Refusal::TooManyChunks(CHUNKS_MAX))));
    let said = place.state(run).await.node(task.ix).said.clone();
    assert_eq!(said.expect("it has said something").chunks, 1, "a refused chunk is not kept");
    place.succeed(&task).await;
}
