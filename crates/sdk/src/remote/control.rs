//! Changing the course of a run, and what waits for a person.

use serde::Serialize;
use switchyard_api::Approval;
use switchyard_core::run::Decision;
use switchyard_core::{ApprovalId, RunId};

use super::RemoteSwitchyard;
use crate::switchyard::to_value;
use crate::{Error, PendingApproval};

impl RemoteSwitchyard {
    /// Gives a run news by name. A `wait` node that asks for it goes on, now or when it gets there.
    pub async fn signal(&self, run: RunId, name: &str, payload: impl Serialize) -> Result<(), Error> {
        self.client.signal(run, name, &to_value(payload)?).await?;
        Ok(())
    }

    /// Closes a run: what runs is stopped, and what had succeeded is undone by its `compensate`. `by` is for the
    /// history.
    pub async fn cancel(&self, run: RunId, by: &str, reason: &str) -> Result<(), Error> {
        self.client.cancel(run, by, reason, true, false).await?;
        Ok(())
    }

    /// Starts no further node of a run until it is resumed.
    pub async fn pause(&self, run: RunId, by: &str) -> Result<(), Error> {
        self.client.pause(run, by).await?;
        Ok(())
    }

    /// Takes back a pause.
    pub async fn resume(&self, run: RunId, by: &str) -> Result<(), Error> {
        self.client.resume(run, by).await?;
        Ok(())
    }

    /// Starts a failed or cancelled run over, from what failed.
    pub async fn retry(&self, run: RunId, by: &str) -> Result<(), Error> {
        self.client.retry(run, by).await?;
        Ok(())
    }

    /// Everything that waits for a decision, newest first.
    pub async fn approvals(&self) -> Result<Vec<PendingApproval>, Error> {
        self.pending(None).await
    }

    /// The same for one run.
    pub async fn approvals_of(&self, run: RunId) -> Result<Vec<PendingApproval>, Error> {
        self.pending(Some(run)).await
    }

    /// Says yes; the run goes on. `by` and the comment are for the history and for the workflow's expressions.
    pub async fn approve(&self, approval: &ApprovalId, by: &str, comment: &str) -> Result<RunId, Error> {
        Ok(self.client.decide(approval, Decision::Approved, by, comment).await?.run_id)
    }

    /// Says no; the node fails with the code `rejected`.
    pub async fn reject(&self, approval: &ApprovalId, by: &str, comment: &str) -> Result<RunId, Error> {
        Ok(self.client.decide(approval, Decision::Rejected, by, comment).await?.run_id)
    }

    async fn pending(&self, run: Option<RunId>) -> Result<Vec<PendingApproval>, Error> {
        let mut pending = Vec::new();
        for listed in self.client.approvals(run, false).await? {
            // A list leaves payloads out.
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
