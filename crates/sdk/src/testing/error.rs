//! What can go wrong in a test.

use switchyard_core::RunId;
use switchyard_runtime::EngineError;
use switchyard_store::StoreError;

use crate::Error;

/// Why a test does not get on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// No temporary folder could be made.
    #[error("no temporary folder can be made")]
    Folder(#[source] std::io::Error),

    /// The run waits for something that time does not bring: a signal, an approval.
    #[error("{run} does not end by itself: {waits}")]
    Stuck {
        /// Which run.
        run: RunId,
        /// Its nodes that wait, and for what.
        waits: String,
    },

    /// A handler did not return within the test's `real_timeout`.
    #[error("{run} does not come to rest: {runs}")]
    Busy {
        /// Which run.
        run: RunId,
        /// Its nodes that are being executed.
        runs: String,
    },

    /// No approval of this node is pending.
    #[error("node `{node}` of {run} does not wait for an approval")]
    NotAsked {
        /// Which run.
        run: RunId,
        /// Which node.
        node: String,
    },

    /// What Switchyard answered.
    #[error(transparent)]
    Switchyard(#[from] Error),
}

impl From<EngineError> for TestError {
    fn from(error: EngineError) -> Self {
        Self::Switchyard(error.into())
    }
}

impl From<StoreError> for TestError {
    fn from(error: StoreError) -> Self {
        Self::Switchyard(error.into())
    }
}
