//! Changes that belong to no run: workflows, schedules, API keys, dead letters. Each is made once for its operation id.

use serde::Serialize;
use switchyard_core::{OperationId, Timestamp};
use switchyard_store::{
    Mutation, MutationOutcome, OPERATIONS_KEPT, OperationRequest, Operations, StoreError,
};

use super::operation::until_known;
use super::{Engine, EngineError};
use crate::Principal;

/// Operations that are let go in one transaction.
const FORGOTTEN_AT_ONCE: usize = 1_000;

/// Makes a change, or answers what an earlier request with the same id came to. `prepare` decides what to change on the
/// state as it is; a repetition does not depend on that.
pub(crate) async fn mutate<F>(
    operations: &dyn Operations,
    operation: &OperationRequest,
    prepare: impl Fn() -> F,
) -> Result<MutationOutcome, EngineError>
where
    F: Future<Output = Result<Mutation, EngineError>>,
{
    let prepare = &prepare;
    until_known(&operation.id, || async move {
        if let Some(known) = operations.operation(&operation.id).await? {
            return Ok(known.answer(operation)?);
        }
        let mutation = prepare().await?;
        Ok(operations.mutate(mutation, Some(operation)).await?)
    })
    .await
}

/// The operation with this id that asks for this: everything that its caller said. What it changes has no history that
/// could name the caller, so the log does.
pub(crate) fn request(
    by: &Principal,
    operation: &OperationId,
    kind: &str,
    asked: &impl Serialize,
    at: Timestamp,
) -> Result<OperationRequest, EngineError> {
    tracing::debug!(%by, %operation, kind, "a change is asked for");
    let request = OperationRequest::new(operation.clone(), kind, asked, at);
    Ok(request.map_err(|error| StoreError::Corrupt(error.to_string()))?)
}

impl Engine {
    pub(super) async fn mutate<F>(
        &self,
        operation: &OperationRequest,
        prepare: impl Fn() -> F,
    ) -> Result<MutationOutcome, EngineError>
    where
        F: Future<Output = Result<Mutation, EngineError>>,
    {
        mutate(&*self.archive, operation, prepare).await
    }

    /// `asked` is everything that the caller said.
    pub(super) fn asks(
        &self,
        by: &Principal,
        operation: &OperationId,
        kind: &str,
        asked: &impl Serialize,
    ) -> Result<OperationRequest, EngineError> {
        request(by, operation, kind, asked, self.clock.now())
    }

    /// One pass of the duty that lets operations go a day after they were asked for. How many went.
    pub async fn forget_operations(&self) -> Result<usize, EngineError> {
        let mut forgotten = 0;
        loop {
            let before = self.clock.now().minus(OPERATIONS_KEPT);
            let batch = self.archive.forget_operations(before, FORGOTTEN_AT_ONCE).await?;
            forgotten += batch;
            if batch < FORGOTTEN_AT_ONCE {
                return Ok(forgotten);
            }
        }
    }
}
