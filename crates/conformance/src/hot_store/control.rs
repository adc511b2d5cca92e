//! Pause, resume, cancel, patch, retry.

use switchyard_core::in_flight::{Acceptance, ClaimStatus, Command, Limits, NewRun};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, Idempotency, Patched, Refusal, Run, RunStatus, TaskOutcome};
use switchyard_core::{Hash, PatchId, Payload, RunId};
use switchyard_store::StoreError;

use crate::hot_store::fixture::{claim_of, failure};
use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    a_paused_run_hands_nothing_out(&backend.open().await).await;
    a_cancelled_run_stops_what_runs(&backend.open().await).await;
    a_patch_adds_what_has_not_started(&backend.open().await).await;
    a_patch_keeps_its_hands_off_what_has_started(&backend.open().await).await;
    a_retry_repeats_what_failed(&backend.open().await).await;
    a_run_that_is_retried_keeps_its_key(&backend.open().await).await;
    followers_hear_of_events(&backend.open().await).await;
    unknown_runs_are_said_to_be_unknown(&backend.open().await).await;
}

async fn a_paused_run_hands_nothing_out(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(2)).await;
    let held = fixture.claim_node("n0").await;
    fixture.command(run, Command::Pause { by: "me".into() }).await.expect("paused");
    fixture.succeed(&held).await;
    fixture.nothing_to_claim().await;
    assert_eq!(fixture.state(run).await.status(), RunStatus::Paused);
    let twice = fixture.command(run, Command::Pause { by: "me".into() }).await;
    let status = RunStatus::Paused;
    assert_eq!(twice, Err(StoreError::Refused(Refusal::WrongStatus { status, verb: "paused" })));
    fixture.command(run, Command::Resume { by: "me".into() }).await.expect("resumed");
    fixture.pass("n1").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_cancelled_run_stops_what_runs(fixture: &Fixture) {
    let run = fixture.start(&Sketch::new().node("a", &[]).node("b", &[]).node("c", &["a"])).await;
    let held = fixture.claim_node("a").await;
    let cancel = Command::Cancel { by: "me".into(), reason: "enough".into(), compensate: true, now: false };
    fixture.command(run, cancel).await.expect("cancelled");
    fixture.nothing_to_claim().await;
    let standing = fixture.hot.heartbeat(&[claim_of(&held)], None).await.expect("answered");
    assert_eq!(standing, [ClaimStatus::Stop]);
    fixture.settle(&held, TaskOutcome::Cancelled).await;
    fixture.ended(run, RunStatus::Cancelled).await;
    let standing = fixture.hot.heartbeat(&[claim_of(&held)], None).await.expect("answered");
    assert_eq!(standing, [ClaimStatus::Lost]);
}

fn patch(definition: switchyard_core::Hash, seen: u32) -> Command {
    let patched = Patched {
        patch: PatchId::new("patch_1"),
        version: 0,
        definition,
        author: "agent".into(),
        reason: "more to do".into(),
        ops: Payload::null(),
        diff: vec!["+ node extra".into()],
        undoes: None,
        operation: None,
    };
    Command::Patch { seen, patched: Box::new(patched) }
}

async fn a_patch_adds_what_has_not_started(fixture: &Fixture) {
    let sketch = Sketch::chain(2);
    let run = fixture.start(&sketch).await;
    fixture.pass("n0").await;
    let wider = fixture.learn(&sketch.clone().node("extra", &["n0"]).node("last", &["n1", "extra"])).await;
    let stale = fixture.command(run, patch(wider.hash, 7)).await;
    assert_eq!(stale, Err(StoreError::Refused(Refusal::StaleVersion { seen: 7, current: 1 })));
    fixture.command(run, patch(wider.hash, 1)).await.expect("patched");
    let both = fixture.claim(10).await;
    assert_eq!(both.len(), 2, "a need that has ended counts for a new node");
    fixture.succeed(&both[0]).await;
    fixture.succeed(&both[1]).await;
    fixture.pass("last").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_patch_keeps_its_hands_off_what_has_started(fixture: &Fixture) {
    let sketch = Sketch::chain(2);
    let run = fixture.start(&sketch).await;
    let held = fixture.claim_node("n0").await;
    let changed =
        fixture.learn(&Sketch::new().node("n0", &[]).with(|n| n.max_attempts = 9).node("n1", &["n0"])).await;
    let removed = fixture.learn(&Sketch::new().node("n1", &[])).await;
    for graph in [changed, removed] {
        let before = fixture.events(run).await;
        let answer = fixture.command(run, patch(graph.hash, 1)).await;
        assert_eq!(answer, Err(StoreError::Refused(Refusal::NodeStarted("n0".into()))));
        assert_eq!(fixture.events(run).await, before);
    }
    fixture.succeed(&held).await;
    fixture.pass("n1").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn replayed(fixture: &Fixture, run: RunId, sketch: &Sketch) -> Run {
    let ir = sketch.ir();
    Run::replay(&fixture.events(run).await, &|_| Some(ir.clone())).expect("a whole history")
}

async fn a_retry_repeats_what_failed(fixture: &Fixture) {
    let sketch = Sketch::chain(3);
    let run = fixture.start(&sketch).await;
    fixture.pass("n0").await;
    let before = fixture.claim_node("n1").await;
    fixture.settle(&before, failure()).await;
    fixture.ended(run, RunStatus::Failed).await;
    fixture.hot.restore(vec![replayed(fixture, run, &sketch).await]).await.expect("restored");
    fixture.command(run, Command::Retry { by: "me".into() }).await.expect("retried");
    let again = fixture.claim_node("n1").await;
    assert!(again.claim > before.claim, "a claim from before the retry stays stale");
    assert_eq!((again.attempt, again.run_attempt), (1, 2));
    fixture.succeed(&again).await;
    fixture.pass("n2").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_run_that_is_retried_keeps_its_key(fixture: &Fixture) {
    let sketch = Sketch::chain(1);
    let accepted = Accepted {
        idempotency: Some(Idempotency { key: "order-7".into(), body: Hash::of(b"a") }),
        ..fixture.plain(&sketch).await
    };
    let run = fixture.start_as(accepted.clone()).await;
    fixture.settle(&fixture.claim_node("n0").await, failure()).await;
    fixture.ended(run, RunStatus::Failed).await;
    fixture.hot.restore(vec![replayed(fixture, run, &sketch).await]).await.expect("restored");
    fixture.command(run, Command::Retry { by: "me".into() }).await.expect("retried");
    // Longer than the store remembers the key of an ended run.
    fixture.clock.advance(2 * Limits::default().key_memory);
    let again = fixture.hot.accept(NewRun { id: fixture.fresh_run(), accepted }).await;
    assert_eq!(again, Ok(Acceptance::Existing(run)));
}

async fn followers_hear_of_events(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let mut news = fixture.hot.follow(run);
    fixture.pass("n0").await;
    let last = fixture.events(run).await.len() as u64;
    let heard = news.wait_for(|change| change.seq >= last).await.map(|change| *change);
    assert!(heard.expect("the store lives").ended);
}

async fn unknown_runs_are_said_to_be_unknown(fixture: &Fixture) {
    let unknown = fixture.fresh_run();
    let answer = fixture.command(unknown, Command::Pause { by: "me".into() }).await;
    assert_eq!(answer, Err(StoreError::UnknownRun(unknown)));
    assert!(fixture.hot.snapshot(unknown).await.expect("answered").is_none());
}
