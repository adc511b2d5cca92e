//! The index of runs: their current rows, found without reading events.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::error::RunError;
use switchyard_core::run::RunStatus;
use switchyard_core::{Hash, Labels, OperationId, RunId, Timestamp, time};

use crate::{RunCount, RunFilter, StoreError};

/// Finds runs, and the commands that took effect on them.
#[async_trait]
pub trait RunIndex: Send + Sync + 'static {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError>;

    /// The runs that match a filter, in the filter's order.
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError>;

    /// The number of runs that match a filter. Counting stops behind `max`.
    async fn count_runs(&self, filter: &RunFilter, max: Option<u64>) -> Result<RunCount, StoreError>;

    /// Every run that has not ended, oldest first.
    async fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError>;

    /// Unfinished runs that have started children, all of which have ended, oldest first.
    async fn unfinished_with_ended_children(&self) -> Result<Vec<RunId>, StoreError>;

    /// The run that was accepted with this idempotency key, and the hash of its body.
    async fn by_idempotency_key(&self, key: &str) -> Result<Option<(RunId, Hash)>, StoreError>;

    /// The operation with this id that took effect on a run.
    async fn run_operation(
        &self,
        run: RunId,
        id: &OperationId,
    ) -> Result<Option<AppliedOperation>, StoreError>;
}

/// A row of the run index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub run_id: RunId,
    pub workflow: Arc<str>,
    pub workflow_version: Option<u32>,
    pub definition: Hash,
    pub status: RunStatus,
    #[serde(with = "time::rfc3339")]
    pub accepted_at: Timestamp,
    #[serde(with = "time::rfc3339::option")]
    pub ended_at: Option<Timestamp>,
    pub parent: Option<RunId>,
    /// The node of the parent run that started this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_node: Option<Arc<str>>,
    /// The schedule that started this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    pub error: Option<RunError>,
    /// The seq of the run's newest event in this archive.
    pub last_seq: u64,
}

/// A run that has not ended, and the length of its history in this archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    pub run: RunId,
    /// The seq of the run's newest event in this archive.
    pub last_seq: u64,
}

#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The `cursor` for the next page.
    pub next: Option<RunId>,
}

/// A command that took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedOperation {
    /// The seq of the command's first event.
    pub seq: u64,
    /// The hash of the command.
    pub command: Hash,
}
