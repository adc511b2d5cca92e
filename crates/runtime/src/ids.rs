//! Fresh identifiers: the randomness that the core does without.

use switchyard_core::{ApprovalId, OperationId, PatchId, RunId, Timestamp};

/// A run in the partition of its parent, or in the first one.
pub fn run_id(now: Timestamp, partition: u16) -> RunId {
    RunId::new(now, rand::random(), partition)
}

/// For a command whose caller brings none.
pub fn operation_id() -> OperationId {
    OperationId::drawn(rand::random())
}

pub fn approval_id() -> ApprovalId {
    ApprovalId::new(format!("appr_{:016x}", rand::random::<u64>()))
}

pub fn patch_id() -> PatchId {
    PatchId::new(format!("patch_{:016x}", rand::random::<u64>()))
}
