//! Pause, resume, cancel, patch, retry.

use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, Idempotency, Patched, Refusal, Run, RunStatus, TaskOutcome};
use switchyard_core::yard::{Acceptance, Command, Limits, NewRun, Standing};
use switchyard_core::{Hash, PatchId, Payload, RunId};
use switchyard_store::StoreError;

use crate::place::{claim_of, failure};
use crate::{Backend, Place};

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

async fn a_paused_run_hands_nothing_out(place: &Place) {
    let run = place.start(&Sketch::chain(2)).await;
    let held = place.claim_node("n0").await;
    place.command(run, Command::Pause { by: "me".into() }).await.expect("paused");
    place.succeed(&held).await;
    place.nothing_to_claim().await;
    assert_eq!(place.state(run).await.status(), RunStatus::Paused);
    let twice = place.command(run, Command::Pause { by: "me".into() }).await;
    let status = RunStatus::Paused;
    assert_eq!(twice, Err(StoreError::Refused(Refusal::WrongStatus { status, verb: "paused" })));
    place.command(run, Command::Resume { by: "me".into() }).await.expect("resumed");
    place.pass("n1").await;
    place.ended(run, RunStatus::Succeeded).await;
}

async fn a_cancelled_run_stops_what_runs(place: &Place) {
    let run = place.start(&Sketch::new().node("a", &[]).node("b", &[]).node("c", &["a"])).await;
    let held = place.claim_node("a").await;
    let cancel = Command::Cancel { by: "me".into(), reason: "enough".into(), compensate: true, now: false };
    place.command(run, cancel).await.expect("cancelled");
    place.nothing_to_claim().await;
    let standing = place.hot.heartbeat(&[claim_of(&held)], None).await.expect("answered");
    assert_eq!(standing, [Standing::Stop]);
    place.settle(&held, TaskOutcome::Cancelled).await;
    place.ended(run, RunStatus::Cancelled).await;
    let standing = place.hot.heartbeat(&[claim_of(&held)], None).await.expect("answered");
    assert_eq!(standing, [Standing::Lost]);
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

async fn a_patch_adds_what_has_not_started(place: &Place) {
    let sketch = Sketch::chain(2);
    let run = place.start(&sketch).await;
    place.pass("n0").await;
    let wider = place.learn(&sketch.clone().node("extra", &["n0"]).node("last", &["n1", "extra"])).await;
    let stale = place.command(run, patch(wider.hash, 7)).await;
    assert_eq!(stale, Err(StoreError::Refused(Refusal::StaleVersion { seen: 7, current: 1 })));
    place.command(run, patch(wider.hash, 1)).await.expect("patched");
    let both = place.claim(10).await;
    assert_eq!(both.len(), 2, "a need that has ended counts for a new node");
    place.succeed(&both[0]).await;
    place.succeed(&both[1]).await;
    place.pass("last").await;
    place.ended(run, RunStatus::Succeeded).await;
}

async fn a_patch_keeps_its_hands_off_what_has_started(place: &Place) {
    let sketch = Sketch::chain(2);
    let run = place.start(&sketch).await;
    let held = place.claim_node("n0").await;
    let changed =
        place.learn(&Sketch::new().node("n0", &[]).with(|n| n.max_attempts = 9).node("n1", &["n0"])).await;
    let removed = place.learn(&Sketch::new().node("n1", &[])).await;
    for graph in [changed, removed] {
        let before = place.events(run).await;
        let answer = place.command(run, patch(graph.hash, 1)).await;
        assert_eq!(answer, Err(StoreError::Refused(Refusal::NodeStarted("n0".into()))));
        assert_eq!(place.events(run).await, before);
    }
    place.succeed(&held).await;
    place.pass("n1").await;
    place.ended(run, RunStatus::Succeeded).await;
}

async fn replayed(place: &Place, run: RunId, sketch: &Sketch) -> Run {
    let ir = sketch.ir();
    Run::replay(&place.events(run).await, &|_| Some(ir.clone())).expect("a whole history")
}

async fn a_retry_repeats_what_failed(place: &Place) {
    let sketch = Sketch::chain(3);
    let run = place.start(&sketch).await;
    place.pass("n0").await;
    let before = place.claim_node("n1").await;
    place.settle(&before, failure()).await;
    place.ended(run, RunStatus::Failed).await;
    place.hot.restore(vec![replayed(place, run, &sketch).await]).await.expect("restored");
    place.command(run, Command::Retry { by: "me".into() }).await.expect("retried");
    let again = place.claim_node("n1").await;
    assert!(again.claim > before.claim, "a claim from before the retry stays stale");
    assert_eq!((again.attempt, again.run_attempt), (1, 2));
    place.succeed(&again).await;
    place.pass("n2").await;
    place.ended(run, RunStatus::Succeeded).await;
}

async fn a_run_that_is_retried_keeps_its_key(place: &Place) {
    let sketch = Sketch::chain(1);
    let accepted = Accepted {
        idempotency: Some(Idempotency { key: "order-7".into(), body: Hash::of(b"a") }),
        ..place.plain(&sketch).await
    };
    let run = place.start_as(accepted.clone()).await;
    place.settle(&place.claim_node("n0").await, failure()).await;
    place.ended(run, RunStatus::Failed).await;
    place.hot.restore(vec![replayed(place, run, &sketch).await]).await.expect("restored");
    place.command(run, Command::Retry { by: "me".into() }).await.expect("retried");
    // Longer than the key of a run that has ended is remembered.
    place.clock.advance(2 * Limits::default().key_memory);
    let again = place.hot.accept(NewRun { id: place.fresh_run(), accepted }).await;
    assert_eq!(again, Ok(Acceptance::Existing(run)));
}

async fn followers_hear_of_events(place: &Place) {
    let run = place.start(&Sketch::chain(1)).await;
    let mut news = place.hot.follow(run);
    place.pass("n0").await;
    let last = place.events(run).await.len() as u64;
    let heard = news.wait_for(|change| change.seq >= last).await.map(|change| *change);
    assert!(heard.expect("the store lives").ended);
}

async fn unknown_runs_are_said_to_be_unknown(place: &Place) {
    let nobody = place.fresh_run();
    let answer = place.command(nobody, Command::Pause { by: "me".into() }).await;
    assert_eq!(answer, Err(StoreError::UnknownRun(nobody)));
    assert!(place.hot.snapshot(nobody).await.expect("answered").is_none());
}
