//! The two seams of Switchyard, in domain verbs.
//!
//! [`HotStore`] holds runs in flight, [`Archive`] holds history, [`Cas`] holds large payloads. Each has an embedded
//! and a distributed implementation; nothing above them knows which one is used. No connection, transaction or driver
//! type appears here.

mod archive;
mod cas;
mod check;
mod checksum;
mod clock;
mod error;
mod follow;
mod hot;
mod idle;
mod mismatch;
pub mod plain;
pub mod projection;
mod run_filter;
mod worker;

pub use archive::{
    Access, Ack, ApiKeyRecord, AppliedOperation, ApprovalFilter, ApprovalRecord, ApprovalStatus, Approvals,
    Archive, ArchiveMark, BulkAction, BulkCounts, BulkJob, BulkJobs, BulkOutcome, BulkProgress, BulkResult,
    BulkStatus, DeadKind, DeadLetter, DeadLetterGroup, DeadLetters, Definitions, DeleteRequest, Deletion,
    Journal, MARK_EVERY, Mutation, MutationOutcome, OPERATIONS_KEPT, OperationRecord, OperationRequest,
    Operations, POISONED, Page, PayloadHolders, Purge, Registry, ResultCache, Retention, RetentionPolicy,
    RunIndex, RunRecord, STARTS_KEPT, ScheduleRecord, ScheduleStart, Schedules, StartOutcome, Tombstone,
    Tombstones, Unfinished, WorkflowRecord,
};
pub use cas::Cas;
pub use check::{Check, Health};
pub use checksum::{event_checksum, verify_event};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::StoreError;
pub use follow::{Followers, news};
pub use hot::{BandDepth, Change, HotStore, PRIORITIES, QueueDepth, Size, Unarchived, Want};
pub use idle::IdleWorkers;
pub use mismatch::Mismatch;
pub use run_filter::{
    BadFilter, COUNTED_MAX, FIELDS as FILTER_FIELDS, RunCount, RunFilter, RunOrder, RunPath, TimeRange,
};
pub use worker::{Worker, WorkerKind};
