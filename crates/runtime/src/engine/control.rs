//! Commands on runs: cancel, pause, resume, signal, decide, retry.

use serde_json::Value;
use switchyard_core::in_flight::Command;
use switchyard_core::run::{Decision, Operation, Refusal};
use switchyard_core::{ApprovalId, OperationId, RunId};
use switchyard_store::StoreError;

use super::operation::operation;
use super::{Engine, EngineError};

impl Engine {
    /// Workers are told to stop what they hold of it, and have the store's grace for that; with `now` none.
    pub async fn cancel(
        &self,
        run: RunId,
        id: &OperationId,
        by: &str,
        reason: &str,
        compensate: bool,
        now: bool,
    ) -> Result<(), EngineError> {
        let command = Command::Cancel { by: by.into(), reason: reason.into(), compensate, now };
        let operation = operation(id, &("cancel", by, reason, compensate, now));
        self.command(run, operation, command, "cancelled").await
    }

    pub async fn pause(&self, run: RunId, id: &OperationId, by: &str) -> Result<(), EngineError> {
        let operation = operation(id, &("pause", by));
        self.command(run, operation, Command::Pause { by: by.into() }, "paused").await
    }

    pub async fn resume(&self, run: RunId, id: &OperationId, by: &str) -> Result<(), EngineError> {
        let operation = operation(id, &("resume", by));
        self.command(run, operation, Command::Resume { by: by.into() }, "resumed").await
    }

    pub async fn signal(
        &self,
        run: RunId,
        id: &OperationId,
        name: &str,
        payload: &Value,
    ) -> Result<(), EngineError> {
        let payload = self.payloads.keep(payload).await?;
        let operation = operation(id, &("signal", name, &payload));
        self.command(run, operation, Command::Signal { name: name.into(), payload }, "signalled").await
    }

    /// Approves or rejects. The run that waits for it goes on.
    pub async fn decide(
        &self,
        approval: &ApprovalId,
        id: &OperationId,
        decision: Decision,
        by: &str,
        comment: &str,
    ) -> Result<RunId, EngineError> {
        let run = self.run_of_approval(approval).await?;
        let operation = operation(id, &("decide", approval, decision, by, comment));
        let command =
            Command::Decide { approval: approval.clone(), decision, by: by.into(), comment: comment.into() };
        match self.command(run, operation, command, "decided").await {
            Ok(()) => Ok(run),
            // Its run has ended: the question was answered, or withdrawn.
            Err(EngineError::Refused(Refusal::WrongStatus { .. })) => Err(Refusal::NotPending.into()),
            Err(error) => Err(error),
        }
    }

    /// Also of an approval that was decided: the decision may be a repetition of the one that did it.
    async fn run_of_approval(&self, approval: &ApprovalId) -> Result<RunId, EngineError> {
        if let Some(run) = self.hot.run_of_approval(approval).await? {
            return Ok(run);
        }
        let record = self.archive.approval(approval).await?;
        Ok(record.ok_or_else(|| StoreError::unknown("approval", approval))?.run)
    }

    /// Starts an ended run over from what failed.
    pub async fn retry(&self, run: RunId, id: &OperationId, by: &str) -> Result<(), EngineError> {
        self.retry_as(run, &operation(id, &("retry", by)), by).await
    }

    pub(super) async fn retry_as(
        &self,
        run: RunId,
        operation: &Operation,
        by: &str,
    ) -> Result<(), EngineError> {
        let command = Command::Retry { by: by.into() };
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
