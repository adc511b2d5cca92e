//! Approvals: decisions that runs wait for.

use std::sync::Arc;

use serde_json::Value;
use switchyard_core::run::Decision;
use switchyard_core::{ApprovalId, RunId, Timestamp};
use switchyard_runtime::{EngineError, Principal, ids};
use switchyard_store::{ApprovalFilter, ApprovalRecord, ApprovalStatus};

use super::Switchyard;
use crate::Error;

/// A pending approval of a `hitl` node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingApproval {
    /// The id for [`Switchyard::approve`] and [`Switchyard::reject`].
    pub id: ApprovalId,
    /// The run that waits.
    pub run: RunId,
    /// The node that asks.
    pub node: Arc<str>,
    /// The person who should decide. Not enforced.
    pub approver: Option<Arc<str>>,
    /// The question to the approver.
    pub prompt: Option<Arc<str>>,
    /// The node's input, on which the approver decides.
    pub payload: Value,
    /// When the approval times out.
    pub timeout_at: Option<Timestamp>,
}

impl Switchyard {
    /// Lists all pending approvals, newest first.
    pub async fn approvals(&self) -> Result<Vec<PendingApproval>, Error> {
        self.pending(None).await
    }

    /// Lists the pending approvals of one run.
    pub async fn approvals_of(&self, run: RunId) -> Result<Vec<PendingApproval>, Error> {
        self.pending(Some(run)).await
    }

    /// Approves: the run continues. The history and the workflow's expressions see `by` and the comment.
    pub async fn approve(&self, approval: &ApprovalId, by: &str, comment: &str) -> Result<RunId, Error> {
        Ok(self.decide(approval, Decision::Approved, by, comment).await?)
    }

    /// Rejects: the node fails with the code `rejected`.
    pub async fn reject(&self, approval: &ApprovalId, by: &str, comment: &str) -> Result<RunId, Error> {
        Ok(self.decide(approval, Decision::Rejected, by, comment).await?)
    }

    async fn decide(
        &self,
        approval: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: &str,
    ) -> Result<RunId, EngineError> {
        let (by, operation) = (Principal::local(by), ids::operation_id());
        self.engine().decide(&by, approval, &operation, decision, comment).await
    }

    async fn pending(&self, run: Option<RunId>) -> Result<Vec<PendingApproval>, Error> {
        let filter = ApprovalFilter { run, status: Some(ApprovalStatus::Pending) };
        let mut pending = Vec::new();
        for record in self.engine().history().approvals(&filter).await? {
            pending.push(self.shown(record).await?);
        }
        Ok(pending)
    }

    async fn shown(&self, record: ApprovalRecord) -> Result<PendingApproval, Error> {
        let payload = self.engine().payloads().show(&record.payload).await.map_err(EngineError::from)?;
        Ok(PendingApproval {
            id: record.approval,
            run: record.run,
            node: record.node,
            approver: record.approver,
            prompt: record.prompt,
            payload,
            timeout_at: record.timeout_at,
        })
    }
}
