//! Errors of the engine.

use switchyard_base::Diagnostics;
use switchyard_core::run::{Damaged, Refusal};
use switchyard_core::{OperationId, RunId};
use switchyard_lang::ExprError;
use switchyard_store::StoreError;

use crate::catalog::CatalogError;
use crate::payloads::PayloadError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(StoreError),

    /// The command was sent, and the stores did not report in time whether it took effect. Sending it again with the
    /// same id is safe: it takes effect once.
    #[error("whether operation `{operation}` took effect is not known: {why}")]
    OutcomeUnknown { operation: OperationId, why: String },

    #[error(transparent)]
    Refused(#[from] Refusal),

    #[error("there is no run {0}")]
    UnknownRun(RunId),

    /// The definition, the input or the patch is not valid.
    #[error("{0}")]
    Invalid(Diagnostics),

    #[error("the workflow's concurrency key: {0}")]
    ConcurrencyKey(ExprError),

    #[error("{0}")]
    BadRequest(String),

    #[error(transparent)]
    Damaged(#[from] Damaged),
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => Self::Refused(refusal),
            StoreError::UnknownRun(run) => Self::UnknownRun(run),
            other => Self::Store(other),
        }
    }
}

impl From<PayloadError> for EngineError {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::Store(error) => error.into(),
            PayloadError::NotJson(error) => Self::Store(StoreError::Corrupt(error.to_string())),
            PayloadError::TooLarge { .. } => Self::BadRequest(error.to_string()),
        }
    }
}

impl From<CatalogError> for EngineError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Store(error) => error.into(),
            CatalogError::Stale { .. } => Self::Store(StoreError::Corrupt(error.to_string())),
        }
    }
}
