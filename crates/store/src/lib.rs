//! The two seams of Switchyard, in domain verbs.
//!
//! [`HotStore`] holds what is in flight, [`Archive`] holds what happened, [`Cas`] holds what is large. Each has an
//! embedded and a distributed side; nothing above them knows which. No connection, transaction or driver type
//! appears here.

mod archive;
mod cas;
mod check;
mod checksum;
mod clock;
mod dead;
mod error;
mod follow;
mod hot;
mod idle;
mod mismatch;
mod operation;
pub mod plain;

pub use archive::{
    Ack, ApiKeyRecord, AppliedOperation, ApprovalFilter, ApprovalRecord, ApprovalStatus, Archive,
    ArchiveMark, MARK_EVERY, Page, Retention, RunFilter, RunRecord, ScheduleRecord, Unfinished,
    WorkflowRecord,
};
pub use cas::Cas;
pub use check::{Check, Health};
pub use checksum::{event_checksum, verify_event};
pub use clock::{Clock, ManualClock, SystemClock};
pub use dead::{DeadKind, DeadLetter, POISONED, Purge};
pub use error::StoreError;
pub use follow::{Followers, news};
pub use hot::{BandDepth, Change, HotStore, PRIORITIES, QueueDepth, Size, Unarchived, Want};
pub use idle::IdleWorkers;
pub use mismatch::Mismatch;
pub use operation::{Mutation, MutationOutcome, OPERATIONS_KEPT, OperationRecord, OperationRequest};
