//! What the writer is handed, and what it comes to.

use std::sync::Arc;

use rusqlite::ErrorCode;
use switchyard_core::run::{Event, Refusal};
use switchyard_core::{Hash, Timestamp};
use switchyard_store::{
    BulkProgress, DeadLetter, Mutation, MutationOutcome, OperationRequest, RetentionPolicy, StoreError,
};

use super::readers::Unread;
use super::result_cache::CachedResult;
use super::schedules::{Advance, NotedStart};

/// Something to make durable.
#[derive(Debug)]
pub(super) enum Work {
    Append(Vec<Event>),
    Definition { hash: Hash, canonical: Arc<str> },
    Mutation { mutation: Box<Mutation>, operation: Option<OperationRequest> },
    ForgetOperations { before: Timestamp, limit: usize },
    Cache(CachedResult),
    AdvanceSchedule(Advance),
    NoteStart(NotedStart),
    Retain { policy: RetentionPolicy, now: Timestamp, limit: usize },
    Bury(Box<DeadLetter>),
    RecordBulk(Box<BulkProgress>),
}

impl Work {
    /// How much of a transaction it fills, in events.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Append(events) => events.len(),
            Self::Definition { .. }
            | Self::Mutation { .. }
            | Self::ForgetOperations { .. }
            | Self::Cache(_)
            | Self::AdvanceSchedule(_)
            | Self::NoteStart(_)
            | Self::Bury(_)
            | Self::RecordBulk(_) => 1,
            // Other work should not wait for what is behind it, too.
            Self::Retain { .. } => usize::MAX,
        }
    }
}

/// What work came to.
#[derive(Debug)]
pub(super) enum Performed {
    Done,
    /// A refusal concerns its caller alone: it has changed nothing, and the rest of the transaction goes on.
    Mutated(Result<MutationOutcome, Refusal>),
    /// Whether there was anything to change.
    Changed(bool),
    Removed(usize),
}

impl Performed {
    /// How many were removed by work that removes.
    pub(super) fn removed(self) -> usize {
        match self {
            Self::Removed(count) => count,
            Self::Done | Self::Mutated(_) | Self::Changed(_) => 0,
        }
    }
}

/// Why a transaction cannot be finished.
#[derive(Debug)]
pub(super) enum Failure {
    /// The disk or the file, before anything was committed.
    Sqlite(rusqlite::Error),
    /// The disk or the file during COMMIT: what reached the disk shows when the file is opened again.
    Commit(rusqlite::Error),
    /// What we were told does not fit what is stored. Nothing is wrong with the file.
    Refused(StoreError),
}

impl Failure {
    /// A bug above us.
    pub(super) fn contradiction(what: String) -> Self {
        Self::Refused(StoreError::Corrupt(what))
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => Self::contradiction(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Sqlite(e) => Self::Sqlite(e),
            Unread::Store(e) => Self::Refused(e),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::contradiction(format!("an event cannot be written as JSON: {error}"))
    }
}
