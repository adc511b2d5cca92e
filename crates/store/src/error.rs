//! Errors of the stores, split by what the caller can do about them.

use switchyard_core::RunId;

use crate::Mismatch;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached or cannot write, and did not execute the request: try again or give up.
    #[error("{0}")]
    Unavailable(String),

    /// The answer to a requested change was lost: the change was made, is still being made, or was not made.
    /// Repeating the request with the same operation id (or run id, or events) finds out, and makes the change at
    /// most once.
    #[error("{0}")]
    OutcomeUnknown(String),

    /// The folder or file belongs to a running process.
    #[error("{path} is in use by process {pid}")]
    InUse { path: String, pid: u32 },

    #[error("there is no run {0}")]
    UnknownRun(RunId),

    /// The name of a workflow, an approval or a payload that does not exist.
    #[error("there is no {kind} `{name}`")]
    Unknown { kind: &'static str, name: String },

    /// The request does not fit the state of its subject.
    #[error(transparent)]
    Refused(#[from] switchyard_core::run::Refusal),

    /// Another process wrote another history of this run: the events were made from an outdated state.
    #[error("event {seq} of {run} differs from the one that is archived")]
    Diverged { run: RunId, seq: u64 },

    /// The hot store and the archive do not belong together: neither is changed until a person decides.
    #[error(transparent)]
    Mismatched(Box<Mismatch>),

    /// The stored data contradicts itself. Never repaired silently.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
}

impl StoreError {
    pub fn unavailable(what: impl std::fmt::Display) -> Self {
        Self::Unavailable(what.to_string())
    }

    pub fn outcome_unknown(what: impl std::fmt::Display) -> Self {
        Self::OutcomeUnknown(what.to_string())
    }

    /// Whether the store is unavailable for now: the same call may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::OutcomeUnknown(_) | Self::Mismatched(_))
    }

    /// The same error for a request that changes nothing: a lost answer to a read leaves nothing unknown.
    pub fn not_applied(self) -> Self {
        match self {
            Self::OutcomeUnknown(why) => Self::Unavailable(why),
            other => other,
        }
    }

    pub fn unknown(kind: &'static str, name: impl std::fmt::Display) -> Self {
        Self::Unknown { kind, name: name.to_string() }
    }
}

impl From<Mismatch> for StoreError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Mismatched(Box::new(mismatch))
    }
}
