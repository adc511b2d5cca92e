//! What can go wrong at a seam, split by what the caller can do about it.

use switchyard_core::RunId;

use crate::Mismatch;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached or cannot write, and what was asked for was not done: try again or give up.
    #[error("{0}")]
    Unavailable(String),

    /// The store was asked for a change, and its answer was lost: the change was made, is still being made, or was not.
    /// Asking again with the same operation id (or run id, or events) tells, and makes it once at most.
    #[error("{0}")]
    OutcomeUnknown(String),

    /// The folder or file belongs to a running process.
    #[error("{path} is in use by process {pid}")]
    InUse { path: String, pid: u32 },

    #[error("there is no run {0}")]
    UnknownRun(RunId),

    /// A name that nothing answers to: a workflow, an approval, a payload.
    #[error("there is no {kind} `{name}`")]
    Unknown { kind: &'static str, name: String },

    /// The request does not fit the state of what it is about.
    #[error(transparent)]
    Refused(#[from] switchyard_core::run::Refusal),

    /// Another process wrote another history of this run: the events were made from an outdated state.
    #[error("event {seq} of {run} differs from the one that is archived")]
    Diverged { run: RunId, seq: u64 },

    /// The hot store and the archive do not belong together: neither is changed until a person decides.
    #[error(transparent)]
    Mismatched(Box<Mismatch>),

    /// What is stored contradicts itself. Never repaired silently.
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

    /// Whether the store is away, or not to be used at the moment: the same may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::OutcomeUnknown(_) | Self::Mismatched(_))
    }

    /// The same, for something that cannot have changed anything: a lost answer to a question leaves nothing unknown.
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
