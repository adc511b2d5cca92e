//! Settlement: a worker reports the outcome of a task it holds.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::Outcome as Closed;
use super::*;
use crate::NodeError;
use crate::error::RunError;
use crate::ir::{OnError, Role};

/// Names one claim: a later claim of the same node has a higher number, and outdates this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimRef {
    pub run: RunId,
    pub node: Arc<str>,
    pub claim: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    pub claim: ClaimRef,
    pub outcome: Outcome,
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Succeeded(Payload),
    /// The output of an earlier execution is reused.
    Cached(Payload),
    /// The retry policy decides whether this was the last attempt.
    Failed(NodeError),
    Skipped(SkipReason),
    Waiting(WaitFor),
    /// Not done, not failed: another worker may take it.
    HandedBack,
    /// Stopped because its run asked for it.
    Cancelled,
}

impl Outcome {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Succeeded(_) | Self::Cached(_) => "succeeded",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
            Self::Waiting(_) => "waiting",
            Self::HandedBack => "released",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The answer to a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    Applied,
    /// This claim was settled before; nothing changed.
    Duplicate,
    /// The claim is not valid, or no longer; nothing changed.
    Stale,
}

impl Run {
    /// Settles a claim, at most once (I2).
    pub fn settle(&mut self, settlement: Settlement, now: Timestamp, out: &mut Changes) -> Settled {
        let Some(ix) = self.ir.find(&settlement.claim.node) else { return Settled::Stale };
        match self.standing(ix, settlement.claim.claim) {
            Settled::Applied => {}
            other => return other,
        }
        self.settle_running(ix, settlement.outcome, now, out);
        self.conclude(now, out);
        Settled::Applied
    }

    /// Whether a claim is valid right now.
    pub fn standing(&self, ix: NodeIx, claim: u32) -> Settled {
        let node = self.node(ix);
        match (node.state == NodeState::Running, node.claim == claim) {
            (true, true) => Settled::Applied,
            (false, true) => Settled::Duplicate,
            (_, false) => Settled::Stale,
        }
    }

    fn settle_running(&mut self, ix: NodeIx, outcome: Outcome, now: Timestamp, out: &mut Changes) {
        let node = self.id_of(ix);
        let closing = self.closing.is_some() && self.phase == Phase::Closing;
        match outcome {
            Outcome::Succeeded(output) => {
                self.emit(EventKind::NodeSucceeded { node, output, cached: false }, now, out);
            }
            Outcome::Cached(output) => {
                self.emit(EventKind::NodeSucceeded { node, output, cached: true }, now, out);
            }
            Outcome::Skipped(reason) => self.emit(EventKind::NodeSkipped { node, reason }, now, out),
            Outcome::Failed(error) => self.fail_or_retry(ix, error, now, out),
            Outcome::Waiting(_) | Outcome::HandedBack | Outcome::Cancelled if closing => {
                self.emit(EventKind::NodeCancelled { node }, now, out);
            }
            Outcome::Waiting(on) => {
                self.emit(EventKind::NodeWaiting { node, on }, now, out);
                self.begin_waiting(ix, now, out);
            }
            Outcome::HandedBack | Outcome::Cancelled => {
                self.emit(EventKind::NodeReleased { node, reason: ReleaseReason::HandedBack }, now, out);
            }
        }
    }

    /// Starts the node's children, or delivers a signal that has already arrived.
    fn begin_waiting(&mut self, ix: NodeIx, now: Timestamp, out: &mut Changes) {
        self.start_children(ix, now, out);
        self.deliver_signal(ix, now, out);
    }

    pub(super) fn fail_or_retry(
        &mut self,
        ix: NodeIx,
        mut error: NodeError,
        now: Timestamp,
        out: &mut Changes,
    ) {
        let attempt = self.node(ix).attempt;
        let spec = self.ir.node(ix);
        let delay = spec.retry.next_delay(self.id, &spec.id, attempt, &error);
        // Not stored, so a replayed run must not see it either.
        error.retry_after = None;
        match delay {
            Some(delay) if self.phase != Phase::Closing => {
                let node = self.id_of(ix);
                self.emit(EventKind::NodeRetrying { node, attempt, error, at: now.plus(delay) }, now, out);
            }
            _ => self.fail_node(ix, error, now, out),
        }
    }

    /// Fails a node for good, and its run too, unless the node's `on_error` says otherwise.
    pub(super) fn fail_node(&mut self, ix: NodeIx, error: NodeError, now: Timestamp, out: &mut Changes) {
        let (node, attempt) = (self.id_of(ix), self.node(ix).attempt);
        let cause = RunError {
            node: Some(node.clone()),
            attempt: Some(attempt),
            code: error.code.clone(),
            message: error.message.clone(),
            not_compensated: Vec::new(),
        };
        self.emit(EventKind::NodeFailed { node, attempt, error }, now, out);
        let spec = self.ir.node(ix);
        let fatal = match spec.role {
            Role::Step => spec.on_error == OnError::Fail,
            Role::Output => true,
            Role::Compensation { .. } => false,
        };
        if fatal && self.phase == Phase::Running {
            self.close(Closed::Failed, cause, None, true, now, out);
        }
    }
}
