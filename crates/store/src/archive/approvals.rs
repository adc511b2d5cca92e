//! Approvals, projected from the events of their runs.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::{ApprovalId, Payload, RunId, Timestamp};

use crate::StoreError;

/// Finds approvals, open and decided.
#[async_trait]
pub trait Approvals: Send + Sync + 'static {
    async fn approval(&self, approval: &ApprovalId) -> Result<Option<ApprovalRecord>, StoreError>;

    /// Newest first.
    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRecord>, StoreError>;
}

/// An approval as the archive stores it. `Approval` in `crates/api` is the public view.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRecord {
    pub approval: ApprovalId,
    pub run: RunId,
    pub node: Arc<str>,
    pub status: ApprovalStatus,
    pub approver: Option<Arc<str>>,
    pub prompt: Option<Arc<str>>,
    pub payload: Payload,
    pub created_at: Timestamp,
    pub timeout_at: Option<Timestamp>,
    pub decided_at: Option<Timestamp>,
    pub decided_by: Option<Arc<str>>,
    pub comment: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    Approved,
    Rejected,
    /// The approval timed out, and the policy was to fail.
    TimedOut,
    /// The run was closed before a decision.
    Cancelled,
}

impl ApprovalStatus {
    const ALL: [Self; 5] = [Self::Pending, Self::Approved, Self::Rejected, Self::TimedOut, Self::Cancelled];

    /// The status as archives store it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Which approvals to list.
#[derive(Clone, Debug, Default)]
pub struct ApprovalFilter {
    pub run: Option<RunId>,
    pub status: Option<ApprovalStatus>,
}
