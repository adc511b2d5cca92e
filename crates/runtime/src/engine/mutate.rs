//! Changes that belong to no run: workflows, schedules, API keys, dead letters. Each takes effect once for its
//! operation id.

use serde::Serialize;
use switchyard_core::{OperationId, Timestamp};
use switchyard_store::{
    Mutation, MutationOutcome, OPERATIONS_KEPT, OperationRequest, Operations, StoreError,
};

use super::operation::until_known;
use super::{Engine, EngineError};
use crate::Principal;

/// How many operations one transaction removes.
const FORGOTTEN_AT_ONCE: usize = 1_000;

/// Executes a change, or returns the outcome of an earlier request with the same id. `prepare` builds the change from
/// the current state; a repetition does not depend on that state.
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

/// Builds the operation request with this id from everything that the caller chose. Logs the caller, because these
/// changes have no history that could name it.
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

    /// `asked` is everything that the caller chose.
    pub(super) fn asks(
        &self,
        by: &Principal,
        operation: &OperationId,
        kind: &str,
        asked: &impl Serialize,
    ) -> Result<OperationRequest, EngineError> {
        request(by, operation, kind, asked, self.clock.now())
    }

    /// One pass of the duty that removes operations after a day. Returns how many it removed.
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
