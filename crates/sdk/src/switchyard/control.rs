//! Commands to a run: signal, cancel, pause, resume, retry.

use serde::Serialize;
use switchyard_core::RunId;
use switchyard_runtime::{Principal, ids};

use super::{Switchyard, caller, to_value};
use crate::Error;

impl Switchyard {
    /// Sends a named signal to a run. A `wait` node for this signal completes, now or when the run reaches it.
    pub async fn signal(&self, run: RunId, name: &str, payload: impl Serialize) -> Result<(), Error> {
        Ok(self.engine().signal(&caller(), run, &ids::operation_id(), name, &to_value(payload)?).await?)
    }

    /// Cancels a run: running nodes are stopped, and succeeded nodes are undone by their `compensate`. The history
    /// shows `by` and the reason.
    pub async fn cancel(&self, run: RunId, by: &str, reason: &str) -> Result<(), Error> {
        Ok(self
            .engine()
            .cancel(&Principal::local(by), run, &ids::operation_id(), reason, true, false)
            .await?)
    }

    /// Pauses a run: no further node starts until it is resumed.
    pub async fn pause(&self, run: RunId, by: &str) -> Result<(), Error> {
        Ok(self.engine().pause(&Principal::local(by), run, &ids::operation_id()).await?)
    }

    /// Resumes a paused run.
    pub async fn resume(&self, run: RunId, by: &str) -> Result<(), Error> {
        Ok(self.engine().resume(&Principal::local(by), run, &ids::operation_id()).await?)
    }

    /// Restarts a failed or cancelled run from the nodes that failed.
    pub async fn retry(&self, run: RunId, by: &str) -> Result<(), Error> {
        Ok(self.engine().retry(&Principal::local(by), run, &ids::operation_id()).await?)
    }
}
