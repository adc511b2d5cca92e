//! Workers, and what runs wait for.

use switchyard_api::{RunWaits, WorkersView};
use switchyard_core::RunId;

use crate::{Client, Error};

impl Client {
    /// Workers that were heard of within a day, and what each serves.
    pub async fn workers(&self) -> Result<WorkersView, Error> {
        self.get(&["v1", "workers"], &[]).await
    }

    /// What a run waits for at this moment.
    pub async fn waits(&self, run: RunId) -> Result<RunWaits, Error> {
        self.get(&["v1", "runs", &run.to_string(), "waits"], &[]).await
    }
}
