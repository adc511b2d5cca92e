//! Changes to rows.

use std::sync::Arc;

use switchyard_core::error::RunError;
use switchyard_core::run::{Accepted, ApprovalRequest, Operation, RunStatus};
use switchyard_core::{ApprovalId, Hash, Timestamp};

use crate::{ApprovalStatus, DeadLetter};

/// A change to a row, or to a few. It concerns the run of the event that it follows from.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange<'e> {
    /// The run has a row from now on.
    RunAccepted {
        accepted: &'e Accepted,
        at: Timestamp,
        status: RunStatus,
    },
    RunStatus {
        status: RunStatus,
        queued: bool,
    },
    /// It is not queued any more, either.
    RunEnded {
        status: RunStatus,
        at: Timestamp,
        error: Option<&'e RunError>,
    },
    /// A run that had ended is running again: it has neither an end nor an error.
    RunReopened,
    /// A command took effect. If its id took effect on this run before, the first counts.
    OperationApplied {
        seq: u64,
        operation: &'e Operation,
    },
    /// A pending approval. An id that comes again is the same question asked again: the newest stands.
    ApprovalRequested {
        node: &'e str,
        request: &'e ApprovalRequest,
        at: Timestamp,
    },
    ApprovalDecided {
        approval: &'e ApprovalId,
        status: ApprovalStatus,
        at: Timestamp,
        by: &'e str,
        comment: Option<&'e str>,
    },
    /// The approvals of a node, or of every node of the run, as far as they are pending.
    ApprovalsClosed {
        node: Option<&'e str>,
        status: ApprovalStatus,
    },
    DeadLetterBuried(DeadLetter),
    /// Nodes that start over have no dead letters.
    DeadLettersRevived {
        nodes: &'e [Arc<str>],
    },
    /// The run mentions a payload of the CAS.
    PayloadHeld(Hash),
}
