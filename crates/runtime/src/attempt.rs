//! Why an attempt at a node has no outcome: the node failed, or the store did not answer.

use switchyard_core::NodeError;
use switchyard_core::run::TaskOutcome;
use switchyard_store::StoreError;

use crate::catalog::CatalogError;
use crate::payloads::PayloadError;

#[derive(Clone, Debug, PartialEq)]
pub enum AttemptError {
    Node(NodeError),
    /// The store cannot supply what the attempt needs, or cannot store its result, at the moment. The node did not
    /// fail: the task is handed back, and executed later or by another worker.
    StoreUnavailable(StoreError),
}

impl AttemptError {
    /// The outcome of a failed node. `Err` is an error of the store: the task has no outcome yet.
    pub fn outcome(self) -> Result<TaskOutcome, StoreError> {
        match self {
            Self::Node(error) => Ok(TaskOutcome::Failed(error)),
            Self::StoreUnavailable(error) => Err(error),
        }
    }
}

impl From<NodeError> for AttemptError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl From<PayloadError> for AttemptError {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::TooLarge { .. } => NodeError::permanent("too_large", error.to_string()).into(),
            PayloadError::NotJson(_) => NodeError::permanent("corrupt", error.to_string()).into(),
            PayloadError::Store(error) => error.into(),
        }
    }
}

impl From<CatalogError> for AttemptError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Stale { .. } => NodeError::permanent("definition", error.to_string()).into(),
            CatalogError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for AttemptError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::Unavailable(_)
            | StoreError::OutcomeUnknown(_)
            | StoreError::InUse { .. }
            | StoreError::Mismatched(_) => return Self::StoreUnavailable(error),
            StoreError::Unknown { kind: "workflow", .. } => "unknown_workflow",
            StoreError::Unknown { .. } | StoreError::UnknownRun(_) | StoreError::Refused(_) => "store",
            StoreError::Diverged { .. } | StoreError::Corrupt(_) => "corrupt",
        };
        NodeError::permanent(code, error.to_string()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_answer_is_no_failure_of_the_node() {
        let away = StoreError::unavailable("no connection");
        let attempts = [
            AttemptError::from(away.clone()),
            PayloadError::Store(away.clone()).into(),
            CatalogError::Store(away.clone()).into(),
        ];
        for attempt in attempts {
            assert_eq!(attempt.outcome(), Err(away.clone()));
        }
    }

    #[test]
    fn what_the_store_has_not_is_a_failure_of_the_node() {
        let failed = |error: StoreError| match AttemptError::from(error).outcome() {
            Ok(TaskOutcome::Failed(error)) => (error.code.to_string(), error.retryable),
            other => panic!("{other:?}"),
        };
        assert_eq!(failed(StoreError::unknown("workflow", "x")), ("unknown_workflow".to_owned(), false));
        assert_eq!(failed(StoreError::unknown("payload", "x")), ("store".to_owned(), false));
        assert_eq!(failed(StoreError::Corrupt("x".into())), ("corrupt".to_owned(), false));
    }
}
