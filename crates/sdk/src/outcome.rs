//! The outcome of a run.

use std::fmt;

use serde::de::DeserializeOwned;
use switchyard_core::RunId;
use switchyard_core::error::RunError;
use switchyard_core::run::RunStatus;
use switchyard_runtime::RunView;

use crate::Error;

/// The outcome of a run: its output, or its failure.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a run that failed says so here"]
pub struct RunOutcome<T> {
    /// The id of the run.
    pub run: RunId,
    /// The output, or the failure.
    pub result: Result<T, RunFailure>,
}

impl<T> RunOutcome<T> {
    /// The output, or the failure as an error for `?`.
    pub fn output(self) -> Result<T, RunFailure> {
        self.result
    }

    /// Whether the run succeeded.
    pub fn succeeded(&self) -> bool {
        self.result.is_ok()
    }

    /// The failure, if the run did not succeed.
    pub fn failure(&self) -> Option<&RunFailure> {
        self.result.as_ref().err()
    }
}

/// A run that failed or was cancelled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunFailure {
    /// The id of the run.
    pub run: RunId,
    /// [`RunStatus::Failed`] or [`RunStatus::Cancelled`].
    pub status: RunStatus,
    /// The error: the node, the attempt, a code and a message.
    pub error: RunError,
}

impl RunFailure {
    /// The code that the failed handler or the engine gave.
    pub fn code(&self) -> &str {
        &self.error.code
    }
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, status, error } = self;
        write!(f, "{run} {status}: {error}")
    }
}

impl std::error::Error for RunFailure {}

/// Reads the outcome of a run that has ended.
pub(crate) fn read<T: DeserializeOwned>(ended: RunView) -> Result<RunOutcome<T>, Error> {
    let (run, status) = (ended.run_id, ended.status);
    if status != RunStatus::Succeeded {
        let error = ended.error.unwrap_or_else(|| RunError::of_run("unknown", "the run does not say why"));
        return Ok(RunOutcome { run, result: Err(RunFailure { run, status, error }) });
    }
    if let Some(missing) = ended.missing.iter().find(|missing| missing.path == "output") {
        let source =
            serde::de::Error::custom(format!("{} cannot be read: {}", missing.payload, missing.reason));
        return Err(Error::Output { run, source });
    }
    let output = serde_json::from_str(ended.output.get()).map_err(|source| Error::Output { run, source })?;
    Ok(RunOutcome { run, result: Ok(output) })
}
