//! Claims last as long as their workers keep them alive, and no longer than an attempt may take.

use std::time::Duration;

use switchyard_core::in_flight::{BandDepth, ClaimStatus, Command, Limits, Want};
use switchyard_core::ir::AttemptLimit;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{ClaimRef, Event, NodeState, Refusal, Run, RunStatus, Settled, Task, TaskOutcome};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{Clock, StoreError};

use crate::hot_store::fixture::{LEASE, claim_of};
use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    a_silent_worker_loses_its_claim(&backend.open().await).await;
    a_heartbeat_keeps_a_claim(&backend.open().await).await;
    a_node_that_takes_its_workers_down_is_stopped(&backend.open().await).await;
    a_heartbeat_does_not_move_the_limit_of_an_attempt(&backend.open().await).await;
    a_silent_worker_is_held_to_the_limit(&backend.open().await).await;
    a_claim_without_a_lease_has_its_limit_all_the_same(&backend.open().await).await;
    a_lease_that_ends_before_the_limit_is_a_lost_delivery(&backend.open().await).await;
    an_attempt_that_took_too_long_is_retried_by_the_nodes_policy(&backend.open().await).await;
    a_limit_counts_anew_after_a_restart(&backend.open().await).await;
    what_a_claim_was_handed_can_be_read_again(&backend.open().await).await;
    a_worker_that_ignores_stop_is_not_waited_for(&backend.open().await).await;
    a_run_that_is_cancelled_now_ends_at_once(&backend.open().await).await;
    a_run_that_is_being_closed_can_be_hurried(&backend.open().await).await;
    queues_can_be_counted(&backend.open().await).await;
}

async fn silence(fixture: &Fixture) -> usize {
    fixture.clock.advance(LEASE);
    fixture.hot.reclaim().await.expect("answered")
}

async fn a_silent_worker_loses_its_claim(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let lost = fixture.claim_node("n0").await;
    assert_eq!(silence(fixture).await, 1);
    let again = fixture.claim_node("n0").await;
    assert_eq!(again.attempt, lost.attempt, "a lost claim is not a failed attempt");
    assert_eq!(fixture.hot.heartbeat(&[claim_of(&lost)], None).await.expect("answered"), [ClaimStatus::Lost]);
    assert_eq!(fixture.settle(&lost, TaskOutcome::Succeeded(Payload::null())).await, Settled::Stale);
    fixture.succeed(&again).await;
    fixture.ended(run, RunStatus::Succeeded).await;
    assert_eq!(silence(fixture).await, 0, "nothing is left to take back");
}

async fn a_heartbeat_keeps_a_claim(fixture: &Fixture) {
    fixture.start(&Sketch::chain(1)).await;
    let held = fixture.claim_node("n0").await;
    for _ in 0..5 {
        fixture.clock.advance(LEASE - Duration::from_secs(1));
        let standing = fixture.hot.heartbeat(&[claim_of(&held)], Some(LEASE)).await.expect("answered");
        assert_eq!(standing, [ClaimStatus::Held]);
        assert_eq!(fixture.hot.reclaim().await, Ok(0));
    }
    fixture.succeed(&held).await;
}

async fn a_node_that_takes_its_workers_down_is_stopped(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    for delivery in 1.. {
        fixture.claim_node("n0").await;
        assert_eq!(silence(fixture).await, 1);
        if fixture.hot.snapshot(run).await.expect("answered").is_none() {
            assert!(delivery > 1, "one lost worker is bad luck");
            break;
        }
        assert!(delivery < 100, "it never stops");
    }
    fixture.ended(run, RunStatus::Failed).await;
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(&*record.error.expect("an error").code, "poisoned");
}

const LIMIT: Duration = Duration::from_secs(20);

/// One node with this time limit for an attempt and this number of attempts.
fn limited(limit: Duration, max_attempts: u32) -> Sketch {
    Sketch::chain(1).with(|node| (node.limit, node.max_attempts) = (AttemptLimit::Own(limit), max_attempts))
}

async fn later(fixture: &Fixture, by: Duration) -> usize {
    fixture.clock.advance(by);
    fixture.hot.reclaim().await.expect("answered")
}

async fn failed_with(fixture: &Fixture, run: RunId, code: &str) {
    fixture.ended(run, RunStatus::Failed).await;
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(&*record.error.expect("an error").code, code);
}

async fn a_heartbeat_does_not_move_the_limit_of_an_attempt(fixture: &Fixture) {
    let run = fixture.start(&limited(2 * LEASE, 1)).await;
    let held = fixture.claim_node("n0").await;
    for _ in 0..3 {
        assert_eq!(later(fixture, LIMIT - Duration::from_secs(1)).await, 0);
        let standing = fixture.hot.heartbeat(&[claim_of(&held)], Some(10 * LEASE)).await.expect("answered");
        assert_eq!(standing, [ClaimStatus::Held]);
    }
    assert_eq!(later(fixture, Duration::from_secs(3)).await, 1, "a minute is over");
    assert_eq!(fixture.settle(&held, TaskOutcome::Succeeded(Payload::null())).await, Settled::Stale);
    failed_with(fixture, run, "timeout").await;
}

async fn a_silent_worker_is_held_to_the_limit(fixture: &Fixture) {
    let run = fixture.start(&limited(LIMIT, 1)).await;
    let held = fixture.claim_node("n0").await;
    let limit = held.limit.expect("it is told its limit");
    assert_eq!((limit.lasts, limit.ends), (LIMIT, fixture.clock.now().plus(LIMIT)));
    assert_eq!(later(fixture, LIMIT - Duration::from_millis(1)).await, 0);
    assert_eq!(later(fixture, Duration::from_millis(1)).await, 1, "before its lease ran out");
    failed_with(fixture, run, "timeout").await;
    assert_eq!(later(fixture, LEASE).await, 0, "nothing is left to take back");
}

async fn a_claim_without_a_lease_has_its_limit_all_the_same(fixture: &Fixture) {
    let run = fixture.start(&limited(LIMIT, 1)).await;
    let want = Want { lease: None, ..fixture.want(1) };
    let task = fixture.hot.step(Vec::new(), &want).await.expect("claimed").1.remove(0);
    let standing = fixture.hot.heartbeat(&[claim_of(&task)], None).await.expect("answered");
    assert_eq!(standing, [ClaimStatus::Held]);
    assert_eq!(later(fixture, LIMIT).await, 1);
    failed_with(fixture, run, "timeout").await;
}

async fn a_lease_that_ends_before_the_limit_is_a_lost_delivery(fixture: &Fixture) {
    fixture.start(&limited(2 * LEASE, 1)).await;
    let lost = fixture.claim_node("n0").await;
    // Both the lease and the limit have passed: the lease was first.
    assert_eq!(later(fixture, 3 * LEASE).await, 1);
    let again = fixture.claim_node("n0").await;
    assert_eq!((again.attempt, again.claim), (lost.attempt, lost.claim + 1));
    assert_eq!(again.limit.expect("a limit").ends, fixture.clock.now().plus(2 * LEASE), "its own");
}

async fn an_attempt_that_took_too_long_is_retried_by_the_nodes_policy(fixture: &Fixture) {
    let run = fixture.start(&limited(LIMIT, 2)).await;
    let first = fixture.claim_node("n0").await;
    assert_eq!(later(fixture, LIMIT).await, 1);
    let state = fixture.state(run).await;
    let node = &state.nodes[0];
    assert_eq!((node.state, &*node.error.as_ref().expect("an error").code), (NodeState::Waiting, "timeout"));
    fixture.nothing_to_claim().await;
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.hot.fire_timers().await.expect("answered").0, 1);
    let second = fixture.claim_node("n0").await;
    assert_eq!((second.attempt, second.claim), (2, 2));
    assert_eq!(fixture.settle(&first, TaskOutcome::Succeeded(Payload::null())).await, Settled::Stale);
    assert_eq!(later(fixture, LIMIT).await, 1);
    failed_with(fixture, run, "timeout").await;
}

/// The worker was lost with the store; the next one has the whole time limit.
async fn a_limit_counts_anew_after_a_restart(fixture: &Fixture) {
    let sketch = limited(LIMIT, 1);
    let run = fixture.start(&sketch).await;
    fixture.claim_node("n0").await;
    let ir = sketch.ir();
    let history = fixture.events(run).await;
    let other = fixture.fresh_run();
    let moved: Vec<_> = history.into_iter().map(|event| Event { run: other, ..event }).collect();
    let lost = Run::replay(&moved, &|_| Some(ir.clone())).expect("a whole history");
    fixture.archive.append(moved).await.expect("archived");
    fixture.hot.restore(vec![lost]).await.expect("restored");
    fixture.clock.advance(Duration::from_secs(5));
    let again = fixture.claim_node("n0").await;
    assert_eq!((again.run, again.claim), (other, 2));
    assert_eq!(later(fixture, LIMIT - Duration::from_secs(5)).await, 1, "the claim of the first run");
    assert_eq!(later(fixture, Duration::from_secs(5)).await, 1);
    failed_with(fixture, other, "timeout").await;
}

async fn what_a_claim_was_handed_can_be_read_again(fixture: &Fixture) {
    let sketch = Sketch::chain(2).with(|node| node.limit = AttemptLimit::Default);
    fixture.start(&sketch).await;
    let first = fixture.claim_node("n0").await;
    let output = Payload::from_value(&serde_json::json!({ "n": 7 }));
    assert_eq!(fixture.settle(&first, TaskOutcome::Succeeded(output)).await, Settled::Applied);
    fixture.clock.advance(Duration::from_secs(1));
    let held = fixture.claim_node("n1").await;
    let again = fixture.hot.held_task(&claim_of(&held)).await.expect("answered").expect("it is held");
    let kept = |task: &Task| Task { queued_at: Timestamp::default(), ..task.clone() };
    assert_eq!(format!("{:?}", kept(&again)), format!("{:?}", kept(&held)));
    assert_eq!(again.limit.expect("a limit").lasts, Limits::default().attempt_default);
    assert!(fixture.hot.held_task(&claim_of(&first)).await.expect("answered").is_none(), "it was settled");
    let never = ClaimRef { claim: 9, ..claim_of(&held) };
    assert!(fixture.hot.held_task(&never).await.expect("answered").is_none());
    fixture.succeed(&held).await;
    assert!(fixture.hot.held_task(&claim_of(&held)).await.expect("answered").is_none(), "its run has ended");
}

fn cancel(now: bool) -> Command {
    Command::Cancel { by: "me".into(), reason: "".into(), compensate: true, now }
}

async fn a_worker_that_ignores_stop_is_not_waited_for(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let held = fixture.claim_node("n0").await;
    fixture.command(run, cancel(false)).await.expect("cancelled");
    let grace = Limits::default().stop_grace;
    fixture.clock.advance(grace - Duration::from_secs(1));
    assert_eq!(fixture.hot.fire_timers().await.expect("answered").0, 0);
    let standing = fixture.hot.heartbeat(&[claim_of(&held)], Some(10 * LEASE)).await.expect("answered");
    assert_eq!(standing, [ClaimStatus::Stop]);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.hot.fire_timers().await.expect("answered"), (1, None));
    fixture.ended(run, RunStatus::Cancelled).await;
    assert_eq!(fixture.settle(&held, TaskOutcome::Succeeded(Payload::null())).await, Settled::Stale);
    assert_eq!(later(fixture, 20 * LEASE).await, 0, "its lease went with it");
}

async fn a_run_that_is_cancelled_now_ends_at_once(fixture: &Fixture) {
    let sketch = Sketch::new().node("a", &[]).with(|a| a.compensated = true).node("b", &["a"]);
    let run = fixture.start(&sketch).await;
    fixture.pass("a").await;
    let held = fixture.claim_node("b").await;
    fixture.command(run, cancel(true)).await.expect("cancelled");
    assert_eq!(fixture.hot.heartbeat(&[claim_of(&held)], None).await.expect("answered"), [ClaimStatus::Lost]);
    assert_ne!(fixture.settle(&held, TaskOutcome::Succeeded(Payload::null())).await, Settled::Applied);
    // The succeeded node is compensated nevertheless.
    fixture.pass("a/compensate").await;
    fixture.ended(run, RunStatus::Cancelled).await;
    assert_eq!(later(fixture, 20 * LEASE).await, 0);
}

async fn a_run_that_is_being_closed_can_be_hurried(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let held = fixture.claim_node("n0").await;
    fixture.command(run, cancel(false)).await.expect("cancelled");
    let twice = fixture.command(run, cancel(false)).await;
    let status = RunStatus::Closing;
    assert_eq!(twice, Err(StoreError::Refused(Refusal::WrongStatus { status, verb: "cancelled" })));
    fixture.command(run, cancel(true)).await.expect("ended");
    fixture.ended(run, RunStatus::Cancelled).await;
    assert_eq!(fixture.settle(&held, TaskOutcome::Cancelled).await, Settled::Stale);
}

async fn queues_can_be_counted(fixture: &Fixture) {
    for _ in 0..3 {
        fixture.start(&Sketch::chain(1)).await;
    }
    fixture.claim_node("n0").await;
    let depths = fixture.hot.queues().await.expect("answered");
    let work = depths.iter().find(|depth| &*depth.queue == "work").expect("the queue");
    let [high, normal, low] = work.bands;
    assert_eq!((normal.waiting, normal.claimed, normal.oldest), (2, 1, Some(fixture.clock.now())));
    assert_eq!([high, low], [BandDepth::default(); 2]);
}
