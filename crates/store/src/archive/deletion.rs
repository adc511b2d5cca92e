//! Runs that were deleted before their time, and who did it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::run::RunStatus;
use switchyard_core::{RunId, Timestamp, time};

use crate::StoreError;

/// What is left of runs that were deleted. [`Mutation::DeleteRun`](crate::Mutation::DeleteRun) deletes one.
#[async_trait]
pub trait Tombstones: Send + Sync + 'static {
    async fn tombstone(&self, run: RunId) -> Result<Option<Tombstone>, StoreError>;

    /// The latest deletions first.
    async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, StoreError>;
}

/// A run that was deleted: which, when and by whom, and nothing of what it was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    pub run_id: RunId,
    pub workflow: Arc<str>,
    pub status: RunStatus,
    #[serde(with = "time::rfc3339")]
    pub deleted_at: Timestamp,
    pub deleted_by: Arc<str>,
    pub reason: Arc<str>,
    /// Runs that went with it: those that it had started, and those that they had.
    pub children: u64,
}

/// A deletion that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteRequest {
    pub run: RunId,
    pub at: Timestamp,
    pub by: Arc<str>,
    pub reason: Arc<str>,
}

/// What a deletion came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deletion {
    Deleted(Tombstone),
    /// It was deleted earlier.
    Before(Tombstone),
    /// It has not ended, or a run that it started has not.
    UnderWay,
    /// Another run started it: it goes with that one.
    ChildOf(RunId),
    Unknown,
}
