//! Errors of handlers, and errors of the SDK.

use std::fmt;
use std::path::PathBuf;

use switchyard_base::Diagnostics;
use switchyard_core::{NodeError, RunId};
use switchyard_runtime::{AttemptError, EngineError};
use switchyard_store::StoreError;

/// The reason why an attempt at a handler failed.
///
/// `?` converts every error into a retryable one with the code `handler_error` and the chain of causes as message:
///
/// ```
/// # use switchyard_sdk::HandlerError;
/// fn parse(text: &str) -> Result<u64, HandlerError> {
///     Ok(text.parse::<u64>()?)
/// }
/// assert_eq!(parse("x").unwrap_err().code(), "handler_error");
/// ```
///
/// It deliberately does not implement [`std::error::Error`]: otherwise `?` could not convert every error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError(Cause);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    Node(NodeError),
    /// The store did not answer: the attempt does not count, and the worker releases its task.
    StoreUnavailable(NodeError),
}

impl HandlerError {
    /// Creates a temporary error: the node's `retry` applies.
    pub fn retryable(code: &str, message: impl fmt::Display) -> Self {
        Self(Cause::Node(NodeError::retryable(code, message.to_string())))
    }

    /// Creates a permanent error: the node fails at once, however many attempts it has left.
    pub fn permanent(code: &str, message: impl fmt::Display) -> Self {
        Self(Cause::Node(NodeError::permanent(code, message.to_string())))
    }

    pub(crate) fn store_unavailable(message: impl fmt::Display) -> Self {
        Self(Cause::StoreUnavailable(NodeError::retryable("store_unavailable", message.to_string())))
    }

    fn error(&self) -> &NodeError {
        match &self.0 {
            Cause::Node(error) | Cause::StoreUnavailable(error) => error,
        }
    }

    /// A stable identifier for programs. `non_retryable` in a workflow names it, and expressions see it as
    /// `error.code`.
    pub fn code(&self) -> &str {
        &self.error().code
    }

    /// A sentence for humans.
    pub fn message(&self) -> &str {
        &self.error().message
    }

    /// Whether another attempt may succeed.
    pub fn is_retryable(&self) -> bool {
        self.error().retryable
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.error(), f)
    }
}

impl<E: Into<anyhow::Error>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error: anyhow::Error = error.into();
        Self::retryable("handler_error", format!("{error:#}"))
    }
}

impl From<HandlerError> for AttemptError {
    fn from(error: HandlerError) -> Self {
        match error.0 {
            Cause::Node(error) => Self::Node(error),
            Cause::StoreUnavailable(error) => Self::StoreUnavailable(StoreError::unavailable(error.message)),
        }
    }
}

/// The reason why a request to Switchyard failed.
///
/// A failed run is not such an error: it is a [`RunFailure`](crate::RunFailure) in the run's
/// [`RunOutcome`](crate::RunOutcome).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The workflow is invalid. Contains all errors with their places.
    #[error("{0}")]
    Workflow(Diagnostics),

    /// A workflow file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// The error from the file system.
        source: std::io::Error,
    },

    /// The input, or a signal's payload, cannot be serialised to JSON.
    #[error("the value is not JSON")]
    Value(#[source] serde_json::Error),

    /// The run succeeded, but its output is not of the requested type.
    #[error("{run} succeeded, but its output is not of the type asked for")]
    Output {
        /// Which one.
        run: RunId,
        /// The error of the deserialisation.
        source: serde_json::Error,
    },

    /// The store does not answer. Accepted runs are not lost: wait again, or reopen the folder.
    #[error("the store does not answer: {0}")]
    Trouble(String),

    /// The server refused the request, or did not answer.
    #[error(transparent)]
    Server(#[from] switchyard_client::Error),

    /// Any other error of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_that_did_not_answer_is_no_failure_of_the_handler() {
        let away = HandlerError::store_unavailable("no connection");
        assert_eq!(
            (away.code(), away.message(), away.is_retryable()),
            ("store_unavailable", "no connection", true)
        );
        let handed_back = AttemptError::StoreUnavailable(StoreError::unavailable("no connection"));
        assert_eq!(AttemptError::from(away), handed_back);
        let own = HandlerError::retryable("store_unavailable", "their own store");
        assert!(matches!(own.into(), AttemptError::Node(_)));
    }
}
