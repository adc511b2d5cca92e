//! Pending approvals, and decisions on them.

use switchyard_api::Approval;
use switchyard_core::ApprovalId;
use switchyard_store::{ApprovalFilter, ApprovalRecord, StoreError};

use super::{EngineError, History};

impl History {
    /// The approvals that match a filter, newest first.
    pub async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRecord>, EngineError> {
        Ok(self.archive.approvals(filter).await?)
    }

    /// An approval with its whole payload.
    pub async fn approval(&self, approval: &ApprovalId) -> Result<Approval, EngineError> {
        let record = self.archive.approval(approval).await?;
        let record = record.ok_or_else(|| StoreError::unknown("approval", approval))?;
        let payload = self.payloads().show(&record.payload).await?;
        Ok(Approval::with(record, payload))
    }
}
