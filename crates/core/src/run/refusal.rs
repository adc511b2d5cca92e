//! Refusals: why a command was not carried out. A refused command has changed nothing.

use std::sync::Arc;

use super::RunStatus;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a run that is {} cannot be {verb}", .status.as_str())]
    WrongStatus { status: RunStatus, verb: &'static str },

    #[error("there is no node `{0}` in this run")]
    UnknownNode(Arc<str>),

    #[error("the approval was decided already, or its run no longer waits for it")]
    NotPending,

    #[error("the run holds {0} signals that no node has asked for; it takes no more until one does")]
    TooManySignals(usize),

    #[error("an attempt at a node may stream {0} chunks, and this one has")]
    TooManyChunks(u32),

    #[error("the patch was made for version {seen} of the graph, which is now at version {current}")]
    StaleVersion { seen: u32, current: u32 },

    #[error("node `{0}` has started: a patch can neither change nor remove it")]
    NodeStarted(Arc<str>),

    #[error("there is no patch `{0}` on this run, or it was undone already")]
    UnknownPatch(Arc<str>),

    #[error("no node of this run is to be done again")]
    NothingToRetry,

    #[error("the definition {0} is not known here")]
    UnknownDefinition(crate::Hash),

    #[error("idempotency key `{key}` was used for {run} with a different workflow or input")]
    KeyReused { key: Arc<str>, run: crate::RunId },

    #[error("operation id `{0}` was used for another request")]
    OperationReused(crate::OperationId),

    #[error("there is a run {0} already")]
    RunExists(crate::RunId),
}
