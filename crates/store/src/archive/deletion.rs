//! Runs that a caller deleted before their retention ended.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::run::RunStatus;
use switchyard_core::{RunId, Timestamp, time};

use crate::StoreError;

/// Tombstones of deleted runs. [`Mutation::DeleteRun`](crate::Mutation::DeleteRun) deletes a run.
#[async_trait]
pub trait Tombstones: Send + Sync + 'static {
    async fn tombstone(&self, run: RunId) -> Result<Option<Tombstone>, StoreError>;

    /// The latest deletions first.
    async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, StoreError>;
}

/// A record of a deleted run: its id, when and by whom it was deleted, and none of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    pub run_id: RunId,
    pub workflow: Arc<str>,
    pub status: RunStatus,
    #[serde(with = "time::rfc3339")]
    pub deleted_at: Timestamp,
    pub deleted_by: Arc<str>,
    pub reason: Arc<str>,
    /// The number of descendants that were deleted with the run.
    pub children: u64,
}

/// A request to delete a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteRequest {
    pub run: RunId,
    pub at: Timestamp,
    pub by: Arc<str>,
    pub reason: Arc<str>,
}

/// The outcome of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deletion {
    Deleted(Tombstone),
    /// The run was deleted earlier.
    Before(Tombstone),
    /// The run, or a run that it started, has not ended.
    UnderWay,
    /// Another run started this one. It is deleted together with that run.
    ChildOf(RunId),
    Unknown,
}
