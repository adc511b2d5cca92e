//! Workers, and the reasons why runs wait.

use switchyard_api::{RunWaits, WorkersView};
use switchyard_core::RunId;

use crate::{Client, Error};

impl Client {
    /// Lists the workers that were in contact within the last day, with the functions that each serves.
    pub async fn workers(&self) -> Result<WorkersView, Error> {
        self.get(&["v1", "workers"], &[]).await
    }

    /// Gets the reasons why a run waits at the moment.
    pub async fn waits(&self, run: RunId) -> Result<RunWaits, Error> {
        self.get(&["v1", "runs", &run.to_string(), "waits"], &[]).await
    }
}
