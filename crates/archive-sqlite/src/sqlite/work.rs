//! The work of the writer, and its results.

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

/// A write to make durable.
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
    /// The share of a transaction that this work takes, in events.
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
            // A retention pass closes the transaction, so that other work does not wait for more behind it.
            Self::Retain { .. } => usize::MAX,
        }
    }
}

/// The result of work.
#[derive(Debug)]
pub(super) enum Performed {
    Done,
    /// A refusal concerns only its caller: it has changed nothing, and the transaction continues.
    Mutated(Result<MutationOutcome, Refusal>),
    /// Whether anything was changed.
    Changed(bool),
    Removed(usize),
}

impl Performed {
    /// The number of removed runs; 0 for other work.
    pub(super) fn removed(self) -> usize {
        match self {
            Self::Removed(count) => count,
            Self::Done | Self::Mutated(_) | Self::Changed(_) => 0,
        }
    }
}

/// Why a transaction failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error of the disk or the file before the commit: nothing was committed.
    Sqlite(rusqlite::Error),
    /// An error of the disk or the file during COMMIT: whether it was committed shows when the file is opened again.
    Commit(rusqlite::Error),
    /// The request contradicts the stored data. The file is not damaged.
    Refused(StoreError),
}

impl Failure {
    /// The failure for a bug in the caller.
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
