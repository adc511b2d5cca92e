//! What can go wrong between a program and a server.

use switchyard_api::Problem;
use switchyard_core::OperationId;

/// Why a server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be one of a server.
    #[error("`{0}` is not the address of a server, such as http://127.0.0.1:7070")]
    Address(String),

    /// The API key has characters that a header cannot have.
    #[error("the API key has characters that no key has")]
    Key,

    /// The HTTP client cannot be set up on this machine.
    #[error("the HTTP client cannot be set up")]
    Setup(#[source] reqwest::Error),

    /// The server does not answer, or the connection broke before the answer was complete.
    #[error("no server answers at {address}")]
    Unreachable {
        /// Where.
        address: String,
        /// What was tried last.
        source: reqwest::Error,
    },

    /// The server says why.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),

    /// A change was asked for, and it is not known whether it was made. Asked for again with the same id
    /// ([`Client::with_operation_id`](crate::Client::with_operation_id)) it is made once at most.
    #[error("it is not known whether it was done")]
    OutcomeUnknown {
        /// The id that it was asked for with.
        operation: OperationId,
        /// What was tried last.
        source: Box<Error>,
    },

    /// An answer, but not one of this API.
    #[error("{address} does not answer as a Switchyard server: {what}")]
    Strange {
        /// Where.
        address: String,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    /// The server's own words, if it gave some.
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

    /// Whether there was no answer at all.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::OutcomeUnknown { source, .. } => source.is_unreachable(),
            _ => false,
        }
    }
}
