//! Changes to rows.

use std::sync::Arc;

use switchyard_core::error::RunError;
use switchyard_core::run::{Accepted, ApprovalRequest, Operation, RunStatus};
use switchyard_core::{ApprovalId, Hash, Timestamp};

use crate::{ApprovalStatus, DeadLetter};

/// A change to one or more rows of the archive. It concerns the run of the event that caused it.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange<'e> {
    /// Adds the row of the run.
    RunAccepted {
        accepted: &'e Accepted,
        at: Timestamp,
        status: RunStatus,
    },
    RunStatus {
        status: RunStatus,
        queued: bool,
    },
    /// Also clears the run's queued mark.
    RunEnded {
        status: RunStatus,
        at: Timestamp,
        error: Option<&'e RunError>,
    },
    /// An ended run runs again: clears its end and its error.
    RunReopened,
    /// A command took effect. If its id took effect on this run before, the first record is kept.
    OperationApplied {
        seq: u64,
        operation: &'e Operation,
    },
    /// A pending approval. An id that occurs again is the same question asked again: the newest request replaces the
    /// earlier one.
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
    /// Closes the pending approvals of a node, or of every node of the run.
    ApprovalsClosed {
        node: Option<&'e str>,
        status: ApprovalStatus,
    },
    DeadLetterBuried(DeadLetter),
    /// Removes the dead letters of nodes that start over.
    DeadLettersRevived {
        nodes: &'e [Arc<str>],
    },
    /// The run mentions a payload of the CAS.
    PayloadHeld(Hash),
}
