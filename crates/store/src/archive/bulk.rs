//! Bulk jobs: one action on every run that matches a filter.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::{RunId, Timestamp, time};

use crate::StoreError;

/// Stores bulk jobs and their results for each run. [`Mutation::StartBulk`](crate::Mutation::StartBulk) adds one,
/// [`Mutation::StopBulk`](crate::Mutation::StopBulk) stops one.
#[async_trait]
pub trait BulkJobs: Send + Sync + 'static {
    async fn bulk_job(&self, id: &str) -> Result<Option<BulkJob>, StoreError>;

    /// Newest first.
    async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkJob>, StoreError>;

    /// Jobs that have work left, oldest first.
    async fn open_bulk_jobs(&self) -> Result<Vec<BulkJob>, StoreError>;

    /// Records the results of a page of runs and the job's position: `cursor` is the last run of the page; `ended_at`
    /// is set when there are no more runs. A result that is stored already is not replaced, the cursor never moves
    /// back, and a job that has ended stays ended.
    async fn record_bulk(&self, progress: BulkProgress) -> Result<(), StoreError>;

    /// The results of a job, ordered by run, after this run, at most `limit`.
    async fn bulk_results(
        &self,
        id: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<BulkResult>, StoreError>;

    /// The number of runs for each outcome.
    async fn bulk_counts(&self, id: &str) -> Result<BulkCounts, StoreError>;
}

/// A bulk job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkJob {
    pub id: Arc<str>,
    pub action: BulkAction,
    /// The text form of the filter, with its times written out.
    pub filter: Arc<str>,
    pub by: Arc<str>,
    #[serde(with = "time::rfc3339")]
    pub created_at: Timestamp,
    pub status: BulkStatus,
    #[serde(with = "time::rfc3339::option")]
    pub ended_at: Option<Timestamp>,
    /// The last run that was worked on.
    pub cursor: Option<RunId>,
}

/// The action of a bulk job on each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum BulkAction {
    Cancel {
        #[serde(default)]
        reason: Arc<str>,
        compensate: bool,
        #[serde(default)]
        now: bool,
    },
    Pause,
    Resume,
    Retry,
    /// Forks the run from this node, or from the node that the run failed at.
    Fork {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Arc<str>>,
    },
    Delete {
        #[serde(default)]
        reason: Arc<str>,
    },
}

impl BulkAction {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Fork { .. } => "fork",
            Self::Delete { .. } => "delete",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkStatus {
    Running,
    Done,
    Stopped,
}

impl BulkStatus {
    pub const ALL: [Self; 3] = [Self::Running, Self::Done, Self::Stopped];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The results of one page of a job, and the job's new position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkProgress {
    pub id: Arc<str>,
    pub results: Vec<BulkResult>,
    pub cursor: Option<RunId>,
    pub ended_at: Option<Timestamp>,
}

/// The result of a job for one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkResult {
    pub run_id: RunId,
    pub outcome: BulkOutcome,
    /// Why the run was skipped or failed, or the id of the forked run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkOutcome {
    Done,
    /// The state of the run did not allow the action.
    Skipped,
    Failed,
}

impl BulkOutcome {
    pub const ALL: [Self; 3] = [Self::Done, Self::Skipped, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// The number of runs for each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkCounts {
    pub done: u64,
    pub skipped: u64,
    pub failed: u64,
}

impl BulkCounts {
    pub fn add(&mut self, outcome: BulkOutcome, runs: u64) {
        match outcome {
            BulkOutcome::Done => self.done += runs,
            BulkOutcome::Skipped => self.skipped += runs,
            BulkOutcome::Failed => self.failed += runs,
        }
    }
}
