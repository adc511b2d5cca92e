//! The archive: permanent history. Each capability is a trait with its records, in a file of its own.

mod access;
mod approvals;
mod bulk;
mod dead_letters;
mod definitions;
mod deletion;
mod journal;
mod operations;
mod payload_holders;
mod registry;
mod result_cache;
mod retention;
mod run_index;
mod schedules;

pub use access::{Access, ApiKeyRecord};
pub use approvals::{ApprovalFilter, ApprovalRecord, ApprovalStatus, Approvals};
pub use bulk::{
    BulkAction, BulkCounts, BulkJob, BulkJobs, BulkOutcome, BulkProgress, BulkResult, BulkStatus,
};
pub use dead_letters::{DeadKind, DeadLetter, DeadLetterGroup, DeadLetters, POISONED, Purge};
pub use definitions::Definitions;
pub use deletion::{DeleteRequest, Deletion, Tombstone, Tombstones};
pub use journal::{Ack, ArchiveMark, Journal, MARK_EVERY};
pub use operations::{
    Mutation, MutationOutcome, OPERATIONS_KEPT, OperationRecord, OperationRequest, Operations,
};
pub use payload_holders::PayloadHolders;
pub use registry::{Registry, WorkflowRecord};
pub use result_cache::ResultCache;
pub use retention::{Retention, RetentionPolicy};
pub use run_index::{AppliedOperation, Page, RunIndex, RunRecord, Unfinished};
pub use schedules::{STARTS_KEPT, ScheduleRecord, ScheduleStart, Schedules, StartOutcome};

/// A backend with every capability of an archive. A backend implements the capabilities; a caller that needs one takes
/// that trait instead.
pub trait Archive:
    Journal
    + RunIndex
    + Approvals
    + DeadLetters
    + Definitions
    + Operations
    + Registry
    + Schedules
    + Access
    + ResultCache
    + Retention
    + PayloadHolders
    + Tombstones
    + BulkJobs
{
}

impl<T> Archive for T where
    T: Journal
        + RunIndex
        + Approvals
        + DeadLetters
        + Definitions
        + Operations
        + Registry
        + Schedules
        + Access
        + ResultCache
        + Retention
        + PayloadHolders
        + Tombstones
        + BulkJobs
{
}
