//! Errors of the testing module.

use switchyard_core::RunId;
use switchyard_runtime::EngineError;
use switchyard_store::StoreError;

use crate::Error;

/// The reason why a step of a test failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// No temporary folder could be created.
    #[error("no temporary folder can be made")]
    Folder(#[source] std::io::Error),

    /// The run waits for a signal or an approval, and no timer will end the wait.
    #[error("{run} does not end by itself: {waits}")]
    Stuck {
        /// The id of the run.
        run: RunId,
        /// The nodes that wait, and what they wait for.
        waits: String,
    },

    /// A handler did not return within the test's `real_timeout`.
    #[error("{run} does not come to rest: {runs}")]
    Busy {
        /// The id of the run.
        run: RunId,
        /// The nodes that are being executed.
        runs: String,
    },

    /// No approval of this node is pending.
    #[error("node `{node}` of {run} does not wait for an approval")]
    NotAsked {
        /// The id of the run.
        run: RunId,
        /// The id of the node.
        node: String,
    },

    /// An error of Switchyard.
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
