//! Approvals: decisions that runs wait for.

use serde_json::{Value, json};
use switchyard_api::{Approval, RunAt};
use switchyard_core::run::Decision;
use switchyard_core::{ApprovalId, RunId};

use crate::request::list;
use crate::{Client, Error};

impl Client {
    /// Lists approvals, newest first: of one run or of all runs; with `all`, also those that were decided.
    pub async fn approvals(&self, run: Option<RunId>, all: bool) -> Result<Vec<Approval>, Error> {
        let mut params = vec![("all", all.to_string())];
        params.extend(run.map(|run| ("run", run.to_string())));
        let answer: Value = self.get(&["v1", "approvals"], &params).await?;
        list(answer, "approvals").map_err(|error| self.strange(error.to_string()))
    }

    /// Gets an approval with its whole payload.
    pub async fn approval(&self, approval: &ApprovalId) -> Result<Approval, Error> {
        self.get(&["v1", "approvals", approval.as_str()], &[]).await
    }

    /// Approves or rejects: the run continues, or the node fails.
    pub async fn decide(
        &self,
        approval: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: &str,
    ) -> Result<RunAt, Error> {
        let verb = match decision {
            Decision::Approved => "approve",
            Decision::Rejected => "reject",
        };
        let body = json!({ "by": by, "comment": comment });
        self.change(&["v1", "approvals", approval.as_str(), verb], &body).await
    }
}
