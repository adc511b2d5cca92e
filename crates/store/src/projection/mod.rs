//! Projects events onto the rows of an archive. Pure: a backend keeps the rows and executes the changes as SQL.
//!
//! - [`place`]: whether an event is the next of its run
//! - [`project`]: the changes that follow from the next event of a run

mod change;
mod place;
#[cfg(test)]
mod tests;

use switchyard_core::Payload;
use switchyard_core::run::{Decision, Event, EventKind, RunStatus, WaitFor};

use crate::{ApprovalStatus, DeadLetter};

pub use change::RowChange;
pub use place::{Place, place};

/// The part of a run's row that its next event is checked against and projected onto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// The seq of the run's newest event.
    pub last_seq: u64,
    pub status: RunStatus,
    /// Whether the run waits for its start or its concurrency key, also while it is paused.
    pub queued: bool,
}

impl RunRow {
    /// The row of a run without events. The acceptance sets the status.
    pub const NEW: Self = Self { last_seq: 0, status: RunStatus::Running, queued: false };

    fn accept(&mut self, queued: bool) -> RunStatus {
        self.queued = queued;
        self.status = if queued { RunStatus::Queued } else { RunStatus::Running };
        self.status
    }

    fn turn<'e>(&mut self, status: RunStatus, queued: bool) -> RowChange<'e> {
        (self.status, self.queued) = (status, queued);
        RowChange::RunStatus { status, queued }
    }
}

/// Applies the next event of a run to `row`, and returns the other changes that it causes. The acceptance of a run is
/// the first of its changes. Most node events change nothing but `last_seq`.
pub fn project<'e>(row: &mut RunRow, event: &'e Event) -> Vec<RowChange<'e>> {
    let mut changes = Vec::new();
    row.last_seq = event.seq;
    project_kind(row, event, &mut changes);
    changes.extend(
        event.kind.operation().map(|operation| RowChange::OperationApplied { seq: event.seq, operation }),
    );
    event.kind.for_each_payload(&mut |payload| {
        if let Payload::Cas(reference) = payload {
            changes.push(RowChange::PayloadHeld(reference.hash));
        }
    });
    changes
}

/// The changes that each kind of event causes.
fn project_kind<'e>(row: &mut RunRow, event: &'e Event, changes: &mut Vec<RowChange<'e>>) {
    use EventKind as E;
    let at = event.at;
    match &event.kind {
        E::RunAccepted(accepted) => {
            let status = row.accept(accepted.queued);
            changes.push(RowChange::RunAccepted { accepted, at, status });
        }
        E::RunStarted {} => {
            // A paused run that starts stays paused.
            let status = if row.status == RunStatus::Queued { RunStatus::Running } else { row.status };
            changes.push(row.turn(status, false));
        }
        E::RunPaused { .. } => changes.push(row.turn(RunStatus::Paused, row.queued)),
        E::RunResumed { .. } if row.status == RunStatus::Paused => {
            // The run is queued again if it has not started.
            let status = if row.queued { RunStatus::Queued } else { RunStatus::Running };
            changes.push(row.turn(status, row.queued));
        }
        E::RunClosing { .. } => {
            changes.push(row.turn(RunStatus::Closing, row.queued));
            changes.push(RowChange::ApprovalsClosed { node: None, status: ApprovalStatus::Cancelled });
        }
        E::RunCompensating {} => changes.push(row.turn(RunStatus::Compensating, row.queued)),
        E::RunEnded { status, error, .. } => {
            (row.status, row.queued) = ((*status).into(), false);
            changes.push(RowChange::RunEnded { status: row.status, at, error: error.as_ref() });
        }
        E::RunRetried { reset, .. } => {
            (row.status, row.queued) = (RunStatus::Running, false);
            changes.push(RowChange::RunReopened);
            changes.push(RowChange::DeadLettersRevived { nodes: reset });
        }
        E::NodeWaiting { node, on: WaitFor::Approval(request) } => {
            changes.push(RowChange::ApprovalRequested { node, request, at });
        }
        E::ApprovalDecided { approval, decision, by, comment, .. } => {
            let status = match decision {
                Decision::Approved => ApprovalStatus::Approved,
                Decision::Rejected => ApprovalStatus::Rejected,
            };
            let comment = Some(&**comment).filter(|comment| !comment.is_empty());
            changes.push(RowChange::ApprovalDecided { approval, status, at, by, comment });
        }
        E::NodeFailed { node, .. } => {
            changes.push(RowChange::ApprovalsClosed { node: Some(node), status: ApprovalStatus::TimedOut });
            changes.extend(DeadLetter::of(event).map(RowChange::DeadLetterBuried));
        }
        E::NodeCancelled { node } => {
            changes.push(RowChange::ApprovalsClosed { node: Some(node), status: ApprovalStatus::Cancelled });
        }
        E::RunResumed { .. }
        | E::RunPatched(_)
        | E::SignalReceived { .. }
        | E::NodeStarted { .. }
        | E::NodeSucceeded { .. }
        | E::NodeRetrying { .. }
        | E::NodeSkipped { .. }
        | E::NodeWaiting { .. }
        | E::NodeWoken { .. }
        | E::NodeReleased { .. }
        | E::NodeCheckpointed { .. }
        | E::RunQueued {}
        | E::NodeChunks { .. }
        | E::NodeLogged { .. }
        | E::ChildStarted { .. }
        | E::ChildEnded { .. } => {}
    }
}
