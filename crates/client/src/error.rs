//! Errors of the client.

use switchyard_api::Problem;
use switchyard_core::OperationId;

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not a valid server address.
    #[error("`{0}` is not the address of a server, such as http://127.0.0.1:7070")]
    Address(String),

    /// The API key has characters that are not allowed in a header.
    #[error("the API key has characters that no key has")]
    Key,

    /// The HTTP client could not be created on this machine.
    #[error("the HTTP client cannot be set up")]
    Setup(#[source] reqwest::Error),

    /// The server does not answer, or the connection broke before the answer was complete.
    #[error("no server answers at {address}")]
    Unreachable {
        /// The address of the server.
        address: String,
        /// The error of the last try.
        source: reqwest::Error,
    },

    /// The server refused the request, and explains why.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),

    /// It is unknown whether the server made a change. The caller can safely repeat it with the same id
    /// ([`Client::with_operation_id`](crate::Client::with_operation_id)): the server makes it at most once.
    #[error("it is not known whether it was done")]
    OutcomeUnknown {
        /// The id of the change.
        operation: OperationId,
        /// The error of the last try.
        source: Box<Error>,
    },

    /// The response is not one of this API.
    #[error("{address} does not answer as a Switchyard server: {what}")]
    Strange {
        /// The address of the server.
        address: String,
        /// A description of the mismatch.
        what: String,
    },
}

impl Error {
    /// The server's problem document, if it sent one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::OutcomeUnknown { source, .. } => source.problem(),
            _ => None,
        }
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| problem.code.as_str())
    }

    /// Whether the server did not answer at all.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::OutcomeUnknown { source, .. } => source.is_unreachable(),
            _ => false,
        }
    }
}
