//! Bulk jobs: one action on every run that a filter finds.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::{RunId, Timestamp, time};

use crate::StoreError;

/// Keeps bulk jobs and what they came to, run by run. [`Mutation::StartBulk`](crate::Mutation::StartBulk) adds one,
/// [`Mutation::StopBulk`](crate::Mutation::StopBulk) stops one.
#[async_trait]
pub trait BulkJobs: Send + Sync + 'static {
    async fn bulk_job(&self, id: &str) -> Result<Option<BulkJob>, StoreError>;

    /// Newest first.
    async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkJob>, StoreError>;

    /// Jobs that have work left, oldest first.
    async fn open_bulk_jobs(&self) -> Result<Vec<BulkJob>, StoreError>;

    /// Records what a page of runs came to, and how far the job is: `cursor` is the last run of the page, and with
    /// `ended_at` there are no more. A result that is there already stays; the cursor never falls back; a job that has
    /// ended stays ended.
    async fn record_bulk(&self, progress: BulkProgress) -> Result<(), StoreError>;

    /// What the job came to, by run, after this one, at most `limit`.
    async fn bulk_results(
        &self,
        id: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<BulkResult>, StoreError>;

    /// How many runs came to what.
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

/// What is done to each run.
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
    /// From this node, or from the node that the run failed at.
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

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkProgress {
    pub id: Arc<str>,
    pub results: Vec<BulkResult>,
    pub cursor: Option<RunId>,
    pub ended_at: Option<Timestamp>,
}

/// What a job came to for one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkResult {
    pub run_id: RunId,
    pub outcome: BulkOutcome,
    /// Why it was skipped or failed, or the run that a fork made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkOutcome {
    Done,
    /// The run was not in a state for the action.
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

/// How many runs came to what.
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
