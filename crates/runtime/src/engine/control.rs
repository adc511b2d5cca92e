//! Commands on runs: cancel, pause, resume, signal, decide, retry.

use serde_json::Value;
use switchyard_core::in_flight::Command;
use switchyard_core::run::{Decision, Operation, Refusal};
use switchyard_core::{ApprovalId, OperationId, RunId};
use switchyard_store::StoreError;

use super::operation::operation;
use super::{Engine, EngineError};
use crate::Principal;

impl Engine {
    /// Cancels a run. Workers that execute its tasks have the store's grace period to stop; with `now` they have
    /// none.
    pub async fn cancel(
        &self,
        by: &Principal,
        run: RunId,
        id: &OperationId,
        reason: &str,
        compensate: bool,
        now: bool,
    ) -> Result<(), EngineError> {
        let by = by.name();
        let command = Command::Cancel { by: by.clone(), reason: reason.into(), compensate, now };
        let operation = operation(id, &("cancel", by, reason, compensate, now));
        self.command(run, operation, command, "cancelled").await
    }

    pub async fn pause(&self, by: &Principal, run: RunId, id: &OperationId) -> Result<(), EngineError> {
        let operation = operation(id, &("pause", by.name()));
        self.command(run, operation, Command::Pause { by: by.name().clone() }, "paused").await
    }

    pub async fn resume(&self, by: &Principal, run: RunId, id: &OperationId) -> Result<(), EngineError> {
        let operation = operation(id, &("resume", by.name()));
        self.command(run, operation, Command::Resume { by: by.name().clone() }, "resumed").await
    }

    pub async fn signal(
        &self,
        by: &Principal,
        run: RunId,
        id: &OperationId,
        name: &str,
        payload: &Value,
    ) -> Result<(), EngineError> {
        tracing::debug!(%by, %run, name, "a run is signalled");
        let payload = self.payloads.keep(payload).await?;
        let operation = operation(id, &("signal", name, &payload));
        self.command(run, operation, Command::Signal { name: name.into(), payload }, "signalled").await
    }

    /// Approves or rejects an approval. The run that waits for it continues.
    pub async fn decide(
        &self,
        by: &Principal,
        approval: &ApprovalId,
        id: &OperationId,
        decision: Decision,
        comment: &str,
    ) -> Result<RunId, EngineError> {
        let run = self.run_of_approval(approval).await?;
        let by = by.name();
        let operation = operation(id, &("decide", approval, decision, by, comment));
        let command =
            Command::Decide { approval: approval.clone(), decision, by: by.clone(), comment: comment.into() };
        match self.command(run, operation, command, "decided").await {
            Ok(()) => Ok(run),
            // The run has ended, so its approval was decided or withdrawn.
            Err(EngineError::Refused(Refusal::WrongStatus { .. })) => Err(Refusal::NotPending.into()),
            Err(error) => Err(error),
        }
    }

    /// Finds the run of an approval, also if it is decided: this decision may be a repetition of the first one.
    async fn run_of_approval(&self, approval: &ApprovalId) -> Result<RunId, EngineError> {
        if let Some(run) = self.hot.run_of_approval(approval).await? {
            return Ok(run);
        }
        let record = self.archive.approval(approval).await?;
        Ok(record.ok_or_else(|| StoreError::unknown("approval", approval))?.run)
    }

    /// Retries an ended run from its failed nodes.
    pub async fn retry(&self, by: &Principal, run: RunId, id: &OperationId) -> Result<(), EngineError> {
        self.retry_as(by, run, &operation(id, &("retry", by.name()))).await
    }

    pub(super) async fn retry_as(
        &self,
        by: &Principal,
        run: RunId,
        operation: &Operation,
    ) -> Result<(), EngineError> {
        let command = Command::Retry { by: by.name().clone() };
        self.until_known(&operation.id, || self.try_retry(run, operation, command.clone())).await
    }

    async fn try_retry(
        &self,
        run: RunId,
        operation: &Operation,
        command: Command,
    ) -> Result<(), EngineError> {
        if !self.hot.in_flight(run).await? {
            let ended = self.history().state(run, None).await?;
            self.hot.restore(vec![ended]).await?;
        }
        self.try_command(run, operation, command, "retried").await
    }
}
