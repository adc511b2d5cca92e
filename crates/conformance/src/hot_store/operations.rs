//! Commands take effect once for each operation id, and are archived before they are answered.

use switchyard_core::in_flight::Command;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    EventKind, Operation, Refusal, Run, RunStatus, SignalTimeout, TaskOutcome, WaitFor,
};
use switchyard_core::{Hash, Payload, RunId};
use switchyard_store::StoreError;

use crate::hot_store::fixture::{failure, fresh_operation};
use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    a_repeated_command_takes_effect_once(&backend.open().await).await;
    an_id_stands_for_one_command(&backend.open().await).await;
    a_refused_command_is_not_remembered(&backend.open().await).await;
    what_is_answered_is_archived(&backend.open().await).await;
    a_run_that_has_ended_is_answered_from_the_archive(&backend.open().await).await;
    a_rebuilt_run_remembers(&backend.open().await, &backend.open().await).await;
    a_run_is_retried_once(&backend.open().await).await;
}

fn go() -> Command {
    Command::Signal { name: "go".into(), payload: Payload::null() }
}

fn cancel() -> Command {
    Command::Cancel { by: "me".into(), reason: "".into(), compensate: true, now: false }
}

/// Starts a run with two nodes that wait for the same signal.
async fn two_that_wait(fixture: &Fixture) -> RunId {
    let run = fixture.start(&Sketch::new().node("a", &[]).node("b", &[])).await;
    for task in fixture.claim(2).await {
        let on = WaitFor::Signal { name: "go".into(), timeout_at: None, on_timeout: SignalTimeout::Fail };
        fixture.settle(&task, TaskOutcome::Waiting(on)).await;
    }
    run
}

async fn a_repeated_command_takes_effect_once(fixture: &Fixture) {
    let run = two_that_wait(fixture).await;
    let sent = fresh_operation();
    fixture.hot.command(run, sent.clone(), go()).await.expect("taken");
    let before = fixture.events(run).await;
    for _ in 0..3 {
        fixture.hot.command(run, sent.clone(), go()).await.expect("answered as the first time");
    }
    assert_eq!(fixture.events(run).await, before, "one signal ended one node");
    fixture.command(run, go()).await.expect("another operation is another signal");
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn an_id_stands_for_one_command(fixture: &Fixture) {
    let run = two_that_wait(fixture).await;
    let sent = fresh_operation();
    fixture.hot.command(run, sent.clone(), go()).await.expect("taken");
    let before = fixture.events(run).await;
    let other = Operation { command: Hash::of(b"something else"), ..sent.clone() };
    let refused = fixture.hot.command(run, other, cancel()).await;
    assert_eq!(refused, Err(Refusal::OperationReused(sent.id.clone()).into()));
    assert_eq!(fixture.events(run).await, before);
    let second = two_that_wait(fixture).await;
    fixture.hot.command(second, sent, go()).await.expect("on another run it is another operation");
}

async fn a_refused_command_is_not_remembered(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let (resume, sent) = (|| Command::Resume { by: "me".into() }, fresh_operation());
    let refused = fixture.hot.command(run, sent.clone(), resume()).await;
    assert!(matches!(refused, Err(StoreError::Refused(Refusal::WrongStatus { .. }))), "{refused:?}");
    fixture.command(run, Command::Pause { by: "me".into() }).await.expect("paused");
    fixture.hot.command(run, sent, resume()).await.expect("now it fits");
    assert_eq!(fixture.state(run).await.status(), RunStatus::Running);
}

/// The check reads the archive right after the answer.
async fn what_is_answered_is_archived(fixture: &Fixture) {
    let run = two_that_wait(fixture).await;
    for command in [go(), Command::Pause { by: "me".into() }, cancel()] {
        let sent = fresh_operation();
        fixture.hot.command(run, sent.clone(), command).await.expect("carried out");
        let found = fixture.archive.run_operation(run, &sent.id).await.expect("answered").expect("archived");
        assert_eq!(found.command, sent.command);
        let event = fixture.archive.events(run, found.seq - 1, 1).await.expect("answered").remove(0);
        assert_eq!(event.kind.operation(), Some(&sent));
    }
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(record.status, RunStatus::Cancelled);
}

async fn a_run_that_has_ended_is_answered_from_the_archive(fixture: &Fixture) {
    let run = two_that_wait(fixture).await;
    let sent = fresh_operation();
    fixture.hot.command(run, sent.clone(), cancel()).await.expect("cancelled");
    fixture.ended(run, RunStatus::Cancelled).await;
    let again = fixture.hot.command(run, sent.clone(), cancel()).await;
    assert_eq!(again, Err(StoreError::UnknownRun(run)), "it is not under way any more");
    assert!(fixture.archive.run_operation(run, &sent.id).await.expect("answered").is_some());
}

/// The second store gets only the history that the first one wrote.
async fn a_rebuilt_run_remembers(lost: &Fixture, fresh: &Fixture) {
    let run = two_that_wait(lost).await;
    let sent = fresh_operation();
    lost.hot.command(run, sent.clone(), go()).await.expect("taken");
    let events = lost.events(run).await;
    fresh.archive.append(events.clone()).await.expect("the archive survived");
    let ir = fresh.learn(&Sketch::new().node("a", &[]).node("b", &[])).await;
    let rebuilt = Run::replay(&events, &|_| Some(ir.clone())).expect("a whole history");
    fresh.hot.restore(vec![rebuilt]).await.expect("restored");
    fresh.hot.command(run, sent.clone(), go()).await.expect("answered as the first time");
    let signals = |kind: &EventKind| matches!(kind, EventKind::SignalReceived { .. });
    assert_eq!(fresh.events(run).await.iter().filter(|event| signals(&event.kind)).count(), 1);
    let other = Operation { command: Hash::of(b"something else"), ..sent.clone() };
    let refused = fresh.hot.command(run, other, cancel()).await;
    assert_eq!(refused, Err(Refusal::OperationReused(sent.id).into()));
}

async fn a_run_is_retried_once(fixture: &Fixture) {
    let sketch = Sketch::chain(1);
    let run = fixture.start(&sketch).await;
    let retry = || Command::Retry { by: "me".into() };
    let sent = fresh_operation();
    // In the second round the run has failed again, and is restored from its history for another retry.
    for _ in 0..2 {
        if let Some(task) = fixture.claim(1).await.first() {
            fixture.settle(task, failure()).await;
        }
        fixture.ended(run, RunStatus::Failed).await;
        let ir = sketch.ir();
        let ended = Run::replay(&fixture.events(run).await, &|_| Some(ir.clone())).expect("a whole history");
        fixture.hot.restore(vec![ended]).await.expect("restored");
        fixture.hot.command(run, sent.clone(), retry()).await.expect("retried, once");
    }
    fixture.nothing_to_claim().await;
    fixture.ended(run, RunStatus::Failed).await;
    let retried = |kind: &EventKind| matches!(kind, EventKind::RunRetried { .. });
    assert_eq!(fixture.events(run).await.iter().filter(|event| retried(&event.kind)).count(), 1);
}
