//! Row changes that follow from many events, merged into one statement for each table and kind of change. Pure.

use std::collections::{HashMap, HashSet};

use switchyard_core::error::RunError;
use switchyard_core::run::{Accepted, ApprovalRequest, Operation};
use switchyard_core::{ApprovalId, Hash, RunId, Timestamp};
use switchyard_store::projection::RowChange;
use switchyard_store::{ApprovalStatus, DeadLetter};

/// The row changes of a group's events, apart from the newest seqs and statuses of runs.
#[derive(Debug, Default)]
pub(super) struct Batch<'e> {
    pub(super) runs: HashMap<RunId, RunChanges<'e>>,
    pub(super) operations: Vec<NewOperation<'e>>,
    pub(super) approvals: ApprovalBatch<'e>,
    pub(super) dead_letters: DeadLetterBatch<'e>,
    /// Payloads in the CAS, and the runs that refer to them.
    pub(super) payloads: HashSet<(Hash, RunId)>,
}

/// The changes to the row of a run. A run that is not here has only a new seq.
#[derive(Debug, Default)]
pub(super) struct RunChanges<'e> {
    /// The acceptance and its time, if the row is new.
    pub(super) accepted: Option<(&'e Accepted, Timestamp)>,
    /// When and why the run ended, if the events say anything about that.
    pub(super) end: Option<End<'e>>,
}

#[derive(Debug, Default)]
pub(super) struct End<'e> {
    /// `None` for a run that starts over.
    pub(super) at: Option<Timestamp>,
    pub(super) error: Option<&'e RunError>,
}

#[derive(Debug)]
pub(super) struct NewOperation<'e> {
    pub(super) run: RunId,
    pub(super) seq: u64,
    pub(super) operation: &'e Operation,
}

impl<'e> Batch<'e> {
    pub(super) fn add(&mut self, run: RunId, change: RowChange<'e>) {
        use RowChange as C;
        match change {
            C::RunAccepted { accepted, at, .. } => self.changes_of(run).accepted = Some((accepted, at)),
            C::RunStatus { .. } => {
                self.changes_of(run);
            }
            C::RunEnded { at, error, .. } => self.changes_of(run).end = Some(End { at: Some(at), error }),
            C::RunReopened => self.changes_of(run).end = Some(End::default()),
            C::OperationApplied { seq, operation } => {
                self.operations.push(NewOperation { run, seq, operation });
            }
            C::ApprovalRequested { node, request, at } => self.approvals.request(run, node, request, at),
            C::ApprovalDecided { approval, status, at, by, comment } => {
                self.approvals.decide(approval, Decided { status, at, by, comment });
            }
            C::ApprovalsClosed { node, status } => self.approvals.close(Closed { run, node, status }),
            C::DeadLetterBuried(letter) => self.dead_letters.buried.push(letter),
            C::DeadLettersRevived { nodes } => {
                nodes.iter().for_each(|node| self.dead_letters.revive(run, node))
            }
            C::PayloadHeld(hash) => {
                self.payloads.insert((hash, run));
            }
        }
    }

    fn changes_of(&mut self, run: RunId) -> &mut RunChanges<'e> {
        self.runs.entry(run).or_default()
    }
}

/// An approval that these events request, in its state after all of them.
#[derive(Debug)]
pub(super) struct Requested<'e> {
    pub(super) run: RunId,
    pub(super) node: &'e str,
    pub(super) request: &'e ApprovalRequest,
    pub(super) created_at: Timestamp,
    pub(super) status: ApprovalStatus,
    pub(super) decided: Option<Decided<'e>>,
}

#[derive(Debug)]
pub(super) struct Decided<'e> {
    pub(super) status: ApprovalStatus,
    pub(super) at: Timestamp,
    pub(super) by: &'e str,
    pub(super) comment: Option<&'e str>,
}

/// Pending approvals that are no longer open: those of a node, or all of a run.
#[derive(Debug)]
pub(super) struct Closed<'e> {
    pub(super) run: RunId,
    pub(super) node: Option<&'e str>,
    pub(super) status: ApprovalStatus,
}

impl Closed<'_> {
    fn concerns(&self, requested: &Requested<'_>) -> bool {
        requested.run == self.run && self.node.is_none_or(|node| requested.node == node)
    }
}

/// Changes to approvals, to be written in this order: decisions on stored approvals, closings of stored approvals
/// that are still pending (the first that fits), and then the approvals of these events. An approval that was decided
/// stays decided, so the order of the first two does not matter.
#[derive(Debug, Default)]
pub(super) struct ApprovalBatch<'e> {
    pub(super) requested: Vec<Requested<'e>>,
    pub(super) decided: HashMap<&'e ApprovalId, Decided<'e>>,
    pub(super) closed: Vec<Closed<'e>>,
}

impl<'e> ApprovalBatch<'e> {
    fn request(&mut self, run: RunId, node: &'e str, request: &'e ApprovalRequest, created_at: Timestamp) {
        self.requested.retain(|earlier| earlier.request.approval != request.approval);
        let status = ApprovalStatus::Pending;
        self.requested.push(Requested { run, node, request, created_at, status, decided: None });
    }

    fn decide(&mut self, approval: &'e ApprovalId, decided: Decided<'e>) {
        match self.requested.iter_mut().find(|requested| requested.request.approval == *approval) {
            Some(requested) => {
                requested.status = decided.status;
                requested.decided = Some(decided);
            }
            None => drop(self.decided.insert(approval, decided)),
        }
    }

    fn close(&mut self, closed: Closed<'e>) {
        for requested in self.requested.iter_mut().filter(|requested| closed.concerns(requested)) {
            if requested.status == ApprovalStatus::Pending {
                requested.status = closed.status;
            }
        }
        self.closed.push(closed);
    }
}

/// Changes to dead letters. Stored ones of revived nodes are removed first.
#[derive(Debug, Default)]
pub(super) struct DeadLetterBatch<'e> {
    /// Runs and nodes that start over.
    pub(super) revived: Vec<(RunId, &'e str)>,
    pub(super) buried: Vec<DeadLetter>,
}

impl<'e> DeadLetterBatch<'e> {
    fn revive(&mut self, run: RunId, node: &'e str) {
        self.buried.retain(|letter| (letter.run_id, letter.node.as_deref()) != (Some(run), Some(node)));
        self.revived.push((run, node));
    }
}
