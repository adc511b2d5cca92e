//! Commands to a run, and approvals.

use serde::Serialize;
use switchyard_api::Approval;
use switchyard_core::run::Decision;
use switchyard_core::{ApprovalId, RunId};

use super::RemoteSwitchyard;
use crate::switchyard::to_value;
use crate::{Error, PendingApproval};

impl RemoteSwitchyard {
    /// Sends a named signal to a run. A `wait` node for this signal completes, now or when the run reaches it.
    pub async fn signal(&self, run: RunId, name: &str, payload: impl Serialize) -> Result<(), Error> {
        self.client.signal(run, name, &to_value(payload)?).await?;
        Ok(())
    }

    /// Cancels a run: running nodes are stopped, and succeeded nodes are undone by their `compensate`. The history
    /// shows `by` and the reason.
    pub async fn cancel(&self, run: RunId, by: &str, reason: &str) -> Result<(), Error> {
        self.client.cancel(run, by, reason, true, false).await?;
        Ok(())
    }

    /// Pauses a run: no further node starts until it is resumed.
    pub async fn pause(&self, run: RunId, by: &str) -> Result<(), Error> {
        self.client.pause(run, by).await?;
        Ok(())
    }

    /// Resumes a paused run.
    pub async fn resume(&self, run: RunId, by: &str) -> Result<(), Error> {
        self.client.resume(run, by).await?;
        Ok(())
    }

    /// Restarts a failed or cancelled run from the nodes that failed.
    pub async fn retry(&self, run: RunId, by: &str) -> Result<(), Error> {
        self.client.retry(run, by).await?;
        Ok(())
    }

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
        Ok(self.client.decide(approval, Decision::Approved, by, comment).await?.run_id)
    }

    /// Rejects: the node fails with the code `rejected`.
    pub async fn reject(&self, approval: &ApprovalId, by: &str, comment: &str) -> Result<RunId, Error> {
        Ok(self.client.decide(approval, Decision::Rejected, by, comment).await?.run_id)
    }

    async fn pending(&self, run: Option<RunId>) -> Result<Vec<PendingApproval>, Error> {
        let mut pending = Vec::new();
        for listed in self.client.approvals(run, false).await? {
            // The list omits payloads.
            pending.push(shown(self.client.approval(&listed.approval).await?));
        }
        Ok(pending)
    }
}

fn shown(approval: Approval) -> PendingApproval {
    PendingApproval {
        id: approval.approval,
        run: approval.run,
        node: approval.node,
        approver: approval.approver,
        prompt: approval.prompt,
        payload: approval.payload.unwrap_or_default(),
        timeout_at: approval.timeout_at,
    }
}
