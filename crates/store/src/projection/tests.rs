use std::sync::Arc;

use serde_json::json;
use switchyard_core::error::{NodeError, RunError};
use switchyard_core::run::*;
use switchyard_core::{ApprovalId, CasRef, Hash, OperationId, Payload, RunId, Timestamp};

use super::*;
use crate::{POISONED, StoreError};

const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn event(seq: u64, kind: EventKind) -> Event {
    Event { run: RunId::new(AT, 7, 0), seq, at: AT, kind }
}

fn accepted(queued: bool) -> EventKind {
    let plain = Accepted::plain("enrich".into(), Hash::of(b"enrich"), Payload::null());
    EventKind::RunAccepted(Box::new(Accepted { queued, ..plain }))
}

fn paused() -> EventKind {
    EventKind::RunPaused { by: "ada".into(), operation: None }
}

fn resumed() -> EventKind {
    EventKind::RunResumed { by: "ada".into(), operation: None }
}

fn run_error() -> RunError {
    let (code, message) = ("boom".into(), "it broke".into());
    RunError { node: None, attempt: None, code, message, not_compensated: vec![] }
}

fn closing() -> EventKind {
    EventKind::RunClosing {
        outcome: Outcome::Failed,
        error: run_error(),
        stop_running: false,
        compensate: true,
        stop_by: None,
        operation: None,
    }
}

fn ended() -> EventKind {
    EventKind::RunEnded { status: EndStatus::Failed, output: Payload::null(), error: Some(run_error()) }
}

fn retried() -> EventKind {
    EventKind::RunRetried { by: "ada".into(), reset: vec!["fetch".into()], operation: None }
}

fn failed(code: &str) -> EventKind {
    let error = NodeError::permanent(code, "3 workers were lost");
    EventKind::NodeFailed { node: "fetch".into(), attempt: 1, error }
}

fn request() -> ApprovalRequest {
    ApprovalRequest {
        approval: ApprovalId::new("appr_1"),
        approver: None,
        prompt: None,
        payload: Payload::null(),
        timeout_at: None,
        on_timeout: ApprovalTimeout::Fail,
    }
}

fn decided(comment: &str) -> EventKind {
    EventKind::ApprovalDecided {
        node: "approve".into(),
        approval: ApprovalId::new("appr_1"),
        decision: Decision::Rejected,
        by: "ada".into(),
        comment: comment.into(),
        operation: None,
    }
}

fn running() -> RunRow {
    RunRow { last_seq: 1, ..RunRow::NEW }
}

fn large(content: &[u8]) -> Payload {
    Payload::Cas(CasRef { hash: Hash::of(content), bytes: 70_000 })
}

#[test]
fn an_accepted_run_runs_or_waits_for_its_concurrency_key() {
    for (queued, status) in [(false, RunStatus::Running), (true, RunStatus::Queued)] {
        let event = event(1, accepted(queued));
        let mut row = RunRow::NEW;
        let EventKind::RunAccepted(accepted) = &event.kind else { unreachable!() };
        assert_eq!(project(&mut row, &event), [RowChange::RunAccepted { accepted, at: AT, status }]);
        assert_eq!(row, RunRow { last_seq: 1, status, queued });
    }
}

#[test]
fn the_status_follows_the_events() {
    use RunStatus::*;
    let start = || EventKind::RunStarted {};
    let histories = [
        vec![(accepted(false), Running, false), (resumed(), Running, false), (paused(), Paused, false)],
        vec![(accepted(true), Queued, true), (start(), Running, false), (paused(), Paused, false)],
        // A paused run keeps its place in the queue, and starting does not end the pause.
        vec![(accepted(true), Queued, true), (paused(), Paused, true), (resumed(), Queued, true)],
        vec![
            (accepted(true), Queued, true),
            (paused(), Paused, true),
            (start(), Paused, false),
            (resumed(), Running, false),
        ],
        vec![
            (accepted(true), Queued, true),
            (closing(), Closing, true),
            (resumed(), Closing, true),
            (EventKind::RunCompensating {}, Compensating, true),
            (ended(), Failed, false),
            (retried(), Running, false),
        ],
    ];
    for (n, history) in histories.into_iter().enumerate() {
        let mut row = RunRow::NEW;
        for (seq, (kind, status, queued)) in (1..).zip(history) {
            let name = kind.name();
            project(&mut row, &event(seq, kind));
            assert_eq!(row, RunRow { last_seq: seq, status, queued }, "history {n} after {name}");
        }
    }
}

#[test]
fn a_resumed_run_that_was_not_paused_stays_as_it_is() {
    assert_eq!(project(&mut running(), &event(2, resumed())), []);
}

#[test]
fn a_run_that_closes_ends_and_starts_over() {
    let mut row = running();
    let (closing, ended, retried) = (event(2, closing()), event(3, ended()), event(4, retried()));
    assert_eq!(
        project(&mut row, &closing),
        [
            RowChange::RunStatus { status: RunStatus::Closing, queued: false },
            RowChange::ApprovalsClosed { node: None, status: ApprovalStatus::Cancelled },
        ]
    );
    let error = run_error();
    let end = RowChange::RunEnded { status: RunStatus::Failed, at: AT, error: Some(&error) };
    assert_eq!(project(&mut row, &ended), [end]);
    let nodes: [Arc<str>; 1] = ["fetch".into()];
    assert_eq!(
        project(&mut row, &retried),
        [RowChange::RunReopened, RowChange::DeadLettersRevived { nodes: &nodes }]
    );
}

#[test]
fn an_approval_is_requested_decided_and_closed() {
    let asks = WaitFor::Approval(Box::new(request()));
    let asks = event(2, EventKind::NodeWaiting { node: "approve".into(), on: asks });
    let request = request();
    let requested = RowChange::ApprovalRequested { node: "approve", request: &request, at: AT };
    assert_eq!(project(&mut running(), &asks), [requested]);
    for (said, comment) in [("", None), ("too dear", Some("too dear"))] {
        let decided = event(3, decided(said));
        let expected = RowChange::ApprovalDecided {
            approval: &request.approval,
            status: ApprovalStatus::Rejected,
            at: AT,
            by: "ada",
            comment,
        };
        assert_eq!(project(&mut running(), &decided), [expected]);
    }
    let cancelled = event(3, EventKind::NodeCancelled { node: "approve".into() });
    let closed = RowChange::ApprovalsClosed { node: Some("approve"), status: ApprovalStatus::Cancelled };
    assert_eq!(project(&mut running(), &cancelled), [closed]);
}

#[test]
fn a_poisoned_node_leaves_a_dead_letter_and_another_does_not() {
    let closed = RowChange::ApprovalsClosed { node: Some("fetch"), status: ApprovalStatus::TimedOut };
    assert_eq!(project(&mut running(), &event(2, failed("boom"))), std::slice::from_ref(&closed));
    let poisoned = event(2, failed(POISONED));
    let letter = DeadLetter::of(&poisoned).unwrap();
    assert_eq!(project(&mut running(), &poisoned), [closed, RowChange::DeadLetterBuried(letter)]);
}

#[test]
fn an_operation_and_payloads_in_the_cas_have_rows() {
    let operation = Operation { id: OperationId::drawn(1), command: Hash::of(b"go") };
    let signal = |payload| EventKind::SignalReceived {
        name: "paid".into(),
        payload,
        operation: Some(operation.clone()),
    };
    let applied = RowChange::OperationApplied { seq: 2, operation: &operation };
    let inline = event(2, signal(Payload::from_value(&json!(5))));
    assert_eq!(project(&mut running(), &inline), std::slice::from_ref(&applied));
    let in_cas = event(2, signal(large(b"a")));
    assert_eq!(project(&mut running(), &in_cas), [applied, RowChange::PayloadHeld(Hash::of(b"a"))]);
    let chunks = EventKind::NodeChunks {
        node: "fetch".into(),
        attempt: 1,
        chunks: vec![large(b"a"), Payload::null(), large(b"b")],
    };
    let held = [Hash::of(b"a"), Hash::of(b"b")].map(RowChange::PayloadHeld);
    assert_eq!(project(&mut running(), &event(2, chunks)), held);
}

#[test]
fn a_step_changes_no_rows_and_allocates_nothing() {
    let started =
        EventKind::NodeStarted { node: "fetch".into(), attempt: 1, claim: 1, worker: "worker-1".into() };
    let succeeded = EventKind::NodeSucceeded { node: "fetch".into(), output: Payload::null(), cached: false };
    let mut row = running();
    for (seq, kind) in (2..).zip([started, succeeded]) {
        assert_eq!(project(&mut row, &event(seq, kind)).capacity(), 0);
    }
    assert_eq!(row, RunRow { last_seq: 3, ..RunRow::NEW });
}

#[test]
fn events_follow_each_other_from_the_acceptance_on() {
    assert_eq!(place(0, &event(1, accepted(false))), Ok(Place::Next));
    assert_eq!(place(1, &event(1, accepted(false))), Ok(Place::Taken));
    assert_eq!(place(4, &event(5, paused())), Ok(Place::Next));
    assert_eq!(place(4, &event(2, paused())), Ok(Place::Taken));
    let run = event(1, paused()).run;
    for (last_seq, event, why) in [
        (4, event(6, paused()), format!("event 6 of {run} came after event 4")),
        (0, event(2, accepted(false)), format!("event 2 of {run} came after event 0")),
        (0, event(1, paused()), format!("run_paused is event 1 of {run}")),
        (1, event(2, accepted(false)), format!("run_accepted is event 2 of {run}")),
    ] {
        assert_eq!(place(last_seq, &event), Err(StoreError::Corrupt(why)));
    }
}
