//! Progress reports from the holder of a claim: checkpoints, chunks and logs.

use serde_json::json;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    CHUNKS_MAX, EventKind, LOG_BYTES_MAX, LogBatch, Progress, Refusal, RunStatus, Settled, Task, TaskOutcome,
};
use switchyard_core::{Payload, RunId};
use switchyard_store::StoreError;

use crate::hot_store::fixture::{LEASE, claim_of, passing_failure};
use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    a_checkpoint_is_read_back_by_the_next_worker(&backend.open().await).await;
    a_checkpoint_is_read_back_by_the_next_attempt(&backend.open().await).await;
    a_checkpoint_does_not_outlive_its_node(&backend.open().await).await;
    chunks_are_events_in_order(&backend.open().await).await;
    a_claim_that_does_not_count_says_nothing(&backend.open().await).await;
    chunks_are_bounded(&backend.open().await).await;
    logged_lines_are_events_in_order(&backend.open().await).await;
    logs_are_bounded_for_each_attempt(&backend.open().await).await;
}

fn value(n: u32) -> Payload {
    Payload::from_value(&json!({ "page": n }))
}

async fn say(fixture: &Fixture, task: &Task, progress: Progress) -> Settled {
    fixture.hot.progress(&claim_of(task), progress).await.expect("answered")
}

async fn keep(fixture: &Fixture, task: &Task, n: u32) {
    assert_eq!(say(fixture, task, Progress::Checkpoint(value(n))).await, Settled::Applied);
}

async fn a_checkpoint_is_read_back_by_the_next_worker(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let lost = fixture.claim_node("n0").await;
    assert_eq!(lost.checkpoint, None);
    keep(fixture, &lost, 1).await;
    keep(fixture, &lost, 2).await;
    // A checkpoint does not extend the lease; heartbeats do.
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.hot.reclaim().await, Ok(1));
    let next = fixture.claim_node("n0").await;
    assert_eq!((next.attempt, next.checkpoint.clone()), (lost.attempt, Some(value(2))), "the newest counts");
    assert_eq!(fixture.settle(&next, TaskOutcome::HandedBack).await, Settled::Applied);
    let again = fixture.claim_node("n0").await;
    assert_eq!(again.checkpoint, Some(value(2)));
    fixture.succeed(&again).await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_checkpoint_is_read_back_by_the_next_attempt(fixture: &Fixture) {
    let mut sketch = Sketch::chain(1);
    sketch.nodes[0].max_attempts = 2;
    fixture.start(&sketch).await;
    let first = fixture.claim_node("n0").await;
    keep(fixture, &first, 5).await;
    assert_eq!(fixture.settle(&first, passing_failure()).await, Settled::Applied);
    fixture.clock.advance(LEASE * 1_000);
    fixture.hot.fire_timers().await.expect("answered");
    let second = fixture.claim_node("n0").await;
    assert_eq!((second.attempt, second.checkpoint), (2, Some(value(5))));
}

async fn a_checkpoint_does_not_outlive_its_node(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(2)).await;
    let task = fixture.claim_node("n0").await;
    keep(fixture, &task, 1).await;
    fixture.succeed(&task).await;
    assert_eq!(fixture.state(run).await.node(task.ix).said, None);
    assert_eq!(fixture.claim_node("n1").await.checkpoint, None, "it is its own node's alone");
}

async fn chunks_are_events_in_order(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let task = fixture.claim_node("n0").await;
    for part in [vec![value(1), value(2)], vec![value(3)]] {
        assert_eq!(say(fixture, &task, Progress::Chunks(part)).await, Settled::Applied);
    }
    fixture.succeed(&task).await;
    let mut seen = Vec::new();
    for event in fixture.events(run).await {
        if let EventKind::NodeChunks { node, attempt, chunks } = event.kind {
            assert_eq!((&*node, attempt), ("n0", 1));
            seen.extend(chunks);
        }
    }
    assert_eq!(seen, [value(1), value(2), value(3)]);
}

async fn a_claim_that_does_not_count_says_nothing(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(2)).await;
    let lost = fixture.claim_node("n0").await;
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.hot.reclaim().await, Ok(1));
    let held = fixture.claim_node("n0").await;
    let before = fixture.state(run).await.seq;
    assert_eq!(say(fixture, &lost, Progress::Checkpoint(value(1))).await, Settled::Stale);
    assert_eq!(say(fixture, &lost, Progress::Chunks(vec![value(1)])).await, Settled::Stale);
    assert_eq!(fixture.state(run).await.seq, before, "nothing has changed");
    fixture.succeed(&held).await;
    assert_eq!(say(fixture, &held, Progress::Checkpoint(value(1))).await, Settled::Duplicate);
    fixture.pass("n1").await;
    assert_eq!(
        say(fixture, &held, Progress::Checkpoint(value(1))).await,
        Settled::Stale,
        "the run has ended"
    );
}

async fn chunks_are_bounded(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let task = fixture.claim_node("n0").await;
    assert_eq!(say(fixture, &task, Progress::Chunks(vec![value(1)])).await, Settled::Applied);
    let flood = Progress::Chunks(vec![value(1); CHUNKS_MAX as usize]);
    let refused = fixture.hot.progress(&claim_of(&task), flood).await;
    assert_eq!(refused, Err(StoreError::Refused(Refusal::TooManyChunks(CHUNKS_MAX))));
    let said = fixture.state(run).await.node(task.ix).said.clone();
    assert_eq!(said.expect("it has said something").chunks, 1, "a refused chunk is not kept");
    fixture.succeed(&task).await;
}

fn lines(n: u32, bytes: u32) -> Progress {
    let lines = Payload::from_value(&json!([{ "at": "2026-01-01T00:00:00.000Z", "message": n.to_string() }]));
    Progress::Logs(LogBatch { lines, count: 1, bytes })
}

/// For each log event: its attempt, its lines, and whether it marks truncation.
async fn logged(fixture: &Fixture, run: RunId) -> Vec<(u32, String, bool)> {
    let events = fixture.events(run).await.into_iter();
    let logged = events.filter_map(|event| match event.kind {
        EventKind::NodeLogged { attempt, lines: Payload::Json(lines), truncated, .. } => {
            let lines: serde_json::Value = serde_json::from_str(lines.get()).expect("a list");
            let message = lines[0]["message"].as_str().unwrap_or_default().to_owned();
            Some((attempt, message, truncated))
        }
        _ => None,
    });
    logged.collect()
}

async fn logged_lines_are_events_in_order(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(2)).await;
    let task = fixture.claim_node("n0").await;
    for n in 1..=3 {
        assert_eq!(say(fixture, &task, lines(n, 1)).await, Settled::Applied);
    }
    fixture.succeed(&task).await;
    assert_eq!(say(fixture, &task, lines(4, 1)).await, Settled::Duplicate, "it has ended");
    fixture.pass("n1").await;
    fixture.ended(run, RunStatus::Succeeded).await;
    let expected: Vec<_> = (1..=3).map(|n| (1, n.to_string(), false)).collect();
    assert_eq!(logged(fixture, run).await, expected);
}

/// The truncation is marked once, later lines are dropped, and the next attempt begins anew.
async fn logs_are_bounded_for_each_attempt(fixture: &Fixture) {
    let mut sketch = Sketch::chain(1);
    sketch.nodes[0].max_attempts = 2;
    let run = fixture.start(&sketch).await;
    let first = fixture.claim_node("n0").await;
    for (n, bytes) in [(1, LOG_BYTES_MAX - 1), (2, 2), (3, 1)] {
        assert_eq!(say(fixture, &first, lines(n, bytes)).await, Settled::Applied);
    }
    assert_eq!(fixture.settle(&first, passing_failure()).await, Settled::Applied);
    fixture.clock.advance(LEASE * 1_000);
    fixture.hot.fire_timers().await.expect("answered");
    let second = fixture.claim_node("n0").await;
    assert_eq!(say(fixture, &second, lines(4, 1)).await, Settled::Applied);
    fixture.succeed(&second).await;
    let expected = [(1, "1", false), (1, "", true), (2, "4", false)];
    let expected: Vec<_> = expected.iter().map(|(a, m, t)| (*a, (*m).to_owned(), *t)).collect();
    assert_eq!(logged(fixture, run).await, expected);
}
