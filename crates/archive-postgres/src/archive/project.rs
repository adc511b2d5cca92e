//! What events do to the rows of runs and approvals: pure, so that many events become one statement a table.
//! The SQLite archive has the same table of what follows in its `project.rs`; one conformance suite holds them together.

use std::collections::HashMap;
use std::sync::Arc;

use switchyard_core::error::RunError;
use switchyard_core::run::{ApprovalRequest, Decision, Event, EventKind, RunStatus, WaitFor};
use switchyard_core::{ApprovalId, RunId, Timestamp};
use switchyard_store::{ApprovalStatus, DeadLetter};

/// What a run's row says, as far as events change it.
#[derive(Debug, Clone)]
pub(super) struct RunStatusRow {
    pub(super) status: RunStatus,
    /// It waits for its concurrency key, also while it is paused.
    pub(super) queued: bool,
    /// When and why it ended, if these events say anything about that.
    pub(super) end: Option<End>,
    /// Whether these events changed anything here.
    pub(super) turned: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct End {
    pub(super) at: Option<Timestamp>,
    pub(super) error: Option<RunError>,
}

impl RunStatusRow {
    pub(super) fn stored(status: RunStatus, queued: bool) -> Self {
        Self { status, queued, end: None, turned: false }
    }

    pub(super) fn accepted(queued: bool) -> Self {
        Self::stored(if queued { RunStatus::Queued } else { RunStatus::Running }, queued)
    }

    pub(super) fn follow(&mut self, event: &Event) {
        use EventKind as E;
        match &event.kind {
            E::RunStarted {} => {
                // A paused run that is let in stays paused.
                let status = if self.status == RunStatus::Queued { RunStatus::Running } else { self.status };
                self.turn(status, false);
            }
            E::RunPaused { .. } => self.turn(RunStatus::Paused, self.queued),
            E::RunResumed { .. } if self.status == RunStatus::Paused => {
                // It goes back to the line if it has not been let in.
                let status = if self.queued { RunStatus::Queued } else { RunStatus::Running };
                self.turn(status, self.queued);
            }
            E::RunClosing { .. } => self.turn(RunStatus::Closing, self.queued),
            E::RunCompensating {} => self.turn(RunStatus::Compensating, self.queued),
            E::RunEnded { status, error, .. } => {
                self.turn((*status).into(), false);
                self.end = Some(End { at: Some(event.at), error: error.clone() });
            }
            E::RunRetried { .. } => {
                self.turn(RunStatus::Running, false);
                self.end = Some(End::default());
            }
            E::RunAccepted(_)
            | E::RunResumed { .. }
            | E::RunPatched(_)
            | E::SignalReceived { .. }
            | E::NodeStarted { .. }
            | E::NodeSucceeded { .. }
            | E::NodeFailed { .. }
            | E::NodeRetrying { .. }
            | E::NodeSkipped { .. }
            | E::NodeWaiting { .. }
            | E::NodeWoken { .. }
            | E::NodeReleased { .. }
            | E::NodeCheckpointed { .. }
            | E::NodeChunks { .. }
            | E::NodeCancelled { .. }
            | E::ApprovalDecided { .. }
            | E::ChildStarted { .. }
            | E::ChildEnded { .. } => {}
        }
    }

    fn turn(&mut self, status: RunStatus, queued: bool) {
        (self.status, self.queued, self.turned) = (status, queued, true);
    }
}

/// A question that is asked in these events.
#[derive(Debug)]
pub(super) struct ApprovalRow {
    pub(super) run: RunId,
    pub(super) node: Arc<str>,
    pub(super) request: ApprovalRequest,
    pub(super) created_at: Timestamp,
    pub(super) status: ApprovalStatus,
    pub(super) decided: Option<Decided>,
}

#[derive(Debug, Clone)]
pub(super) struct Decided {
    pub(super) status: ApprovalStatus,
    pub(super) at: Timestamp,
    pub(super) by: Arc<str>,
    pub(super) comment: Arc<str>,
}

/// A question that is no longer open: that of a node, or all of a run.
#[derive(Debug)]
pub(super) struct Withdrawn {
    pub(super) run: RunId,
    pub(super) node: Option<Arc<str>>,
    pub(super) status: ApprovalStatus,
}

/// What events do to the approvals. To be written in this order: decisions on stored questions, what is withdrawn of
/// stored questions that are still open (the first that fits), and then the questions of these events as they stand
/// at the end of them. A question that was decided stays decided, so the order of the first two does not matter.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    pub(super) asked: Vec<ApprovalRow>,
    pub(super) decided: HashMap<ApprovalId, Decided>,
    pub(super) withdrawn: Vec<Withdrawn>,
}

impl Approvals {
    pub(super) fn follow(&mut self, event: &Event) {
        use EventKind as E;
        match &event.kind {
            E::NodeWaiting { node, on: WaitFor::Approval(request) } => self.ask(event, node, request),
            E::ApprovalDecided { approval, decision, by, comment, .. } => {
                let status = match decision {
                    Decision::Approved => ApprovalStatus::Approved,
                    Decision::Rejected => ApprovalStatus::Rejected,
                };
                let decided = Decided { status, at: event.at, by: by.clone(), comment: comment.clone() };
                self.decide(approval, decided);
            }
            E::RunClosing { .. } => self.withdraw(event.run, None, ApprovalStatus::Cancelled),
            E::NodeFailed { node, .. } => self.withdraw(event.run, Some(node), ApprovalStatus::TimedOut),
            E::NodeCancelled { node } => self.withdraw(event.run, Some(node), ApprovalStatus::Cancelled),
            _ => {}
        }
    }

    /// An id that comes again is the same question asked again: the newest stands.
    fn ask(&mut self, event: &Event, node: &Arc<str>, request: &ApprovalRequest) {
        self.asked.retain(|asked| asked.request.approval != request.approval);
        self.asked.push(ApprovalRow {
            run: event.run,
            node: node.clone(),
            request: request.clone(),
            created_at: event.at,
            status: ApprovalStatus::Pending,
            decided: None,
        });
    }

    fn decide(&mut self, approval: &ApprovalId, decided: Decided) {
        match self.asked.iter_mut().find(|asked| asked.request.approval == *approval) {
            Some(asked) => {
                asked.status = decided.status;
                asked.decided = Some(decided);
            }
            None => drop(self.decided.insert(approval.clone(), decided)),
        }
    }

    fn withdraw(&mut self, run: RunId, node: Option<&Arc<str>>, status: ApprovalStatus) {
        let concerns = |asked: &ApprovalRow| asked.run == run && node.is_none_or(|node| asked.node == *node);
        for asked in self.asked.iter_mut().filter(|asked| concerns(asked)) {
            if asked.status == ApprovalStatus::Pending {
                asked.status = status;
            }
        }
        self.withdrawn.push(Withdrawn { run, node: node.cloned(), status });
    }
}

/// What events do to the dead letters. Stored ones that are revived go first.
#[derive(Debug, Default)]
pub(super) struct Dead {
    pub(super) revived: Vec<(RunId, Arc<str>)>,
    pub(super) buried: Vec<DeadLetter>,
}

impl Dead {
    pub(super) fn follow(&mut self, event: &Event) {
        self.buried.extend(DeadLetter::of(event));
        if let EventKind::RunRetried { reset, .. } = &event.kind {
            let starts_over = |letter: &DeadLetter| {
                letter.run_id == Some(event.run)
                    && letter.node.as_ref().is_some_and(|node| reset.contains(node))
            };
            self.buried.retain(|letter| !starts_over(letter));
            self.revived.extend(reset.iter().map(|node| (event.run, node.clone())));
        }
    }
}
