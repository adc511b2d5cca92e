//! Approvals: decisions that runs wait for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchyard_core::{ApprovalId, RunId, Timestamp, time};
use switchyard_store::{ApprovalRecord, ApprovalStatus};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub approval: ApprovalId,
    pub run: RunId,
    pub node: Arc<str>,
    pub status: ApprovalStatus,
    pub approver: Option<Arc<str>>,
    pub prompt: Option<Arc<str>>,
    /// The value that the approver decides on. Lists omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    #[serde(with = "time::rfc3339")]
    pub created_at: Timestamp,
    #[serde(with = "time::rfc3339::option")]
    pub timeout_at: Option<Timestamp>,
    #[serde(with = "time::rfc3339::option")]
    pub decided_at: Option<Timestamp>,
    pub decided_by: Option<Arc<str>>,
    pub comment: Option<Arc<str>>,
}

impl Approval {
    /// The approval without its payload, for lists.
    pub fn listed(record: ApprovalRecord) -> Self {
        Self::of(record, None)
    }

    /// The approval with its whole payload.
    pub fn with(record: ApprovalRecord, payload: Value) -> Self {
        Self::of(record, Some(payload))
    }

    fn of(record: ApprovalRecord, payload: Option<Value>) -> Self {
        Self {
            approval: record.approval,
            run: record.run,
            node: record.node,
            status: record.status,
            approver: record.approver,
            prompt: record.prompt,
            payload,
            created_at: record.created_at,
            timeout_at: record.timeout_at,
            decided_at: record.decided_at,
            decided_by: record.decided_by,
            comment: record.comment,
        }
    }
}
