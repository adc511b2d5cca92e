//! Errors, split by what the caller can do about them.

use switchyard_redis::AddressError;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An argument is wrong.
    #[error("{0}")]
    Invalid(String),

    /// The server does not answer, or not in time. Every operation may be repeated safely.
    #[error("redis at {address} cannot be reached: {reason}")]
    Unavailable { address: String, reason: String },

    /// The server answered with a refusal.
    #[error("redis at {address} refused: {reason}")]
    Refused { address: String, reason: String },

    /// The thread was written by a release with an unknown format.
    #[error(
        "thread `{thread}` is stored in format {found}, and this release reads format {}",
        crate::keys::FORMAT
    )]
    Format { thread: String, found: String },

    /// The stored bytes cannot be decoded.
    #[error("thread `{thread}` is damaged: {what}")]
    Corrupt { thread: String, what: String },
}

impl Error {
    pub(crate) fn corrupt(thread: &str, what: impl Into<String>) -> Self {
        Self::Corrupt { thread: thread.to_owned(), what: what.into() }
    }
}

impl From<AddressError> for Error {
    fn from(error: AddressError) -> Self {
        Self::Invalid(error.to_string())
    }
}
