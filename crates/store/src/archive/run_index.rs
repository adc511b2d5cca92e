//! Runs as their events leave them, found without their events.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::error::RunError;
use switchyard_core::run::RunStatus;
use switchyard_core::{Hash, OperationId, RunId, Timestamp, time};

use crate::StoreError;

/// Finds runs, and the commands that took effect on them.
#[async_trait]
pub trait RunIndex: Send + Sync + 'static {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError>;

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

/// A run as a list shows it.
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
    pub error: Option<RunError>,
    /// The seq of its newest event here.
    pub last_seq: u64,
}

/// A run that has not ended, and how much of its history is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    pub run: RunId,
    /// The seq of its newest event.
    pub last_seq: u64,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    pub workflow: Option<String>,
    /// Runs that another run started are left out unless asked for.
    pub include_children: bool,
    /// Only runs older than this one: the cursor of the page before.
    pub before: Option<RunId>,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Hand it back as `before` for the next page.
    pub next: Option<RunId>,
}

/// A command that took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedOperation {
    /// Of the event that it began with.
    pub seq: u64,
    /// The hash of what was asked for.
    pub command: Hash,
}
