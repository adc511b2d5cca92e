//! Changing the course of a run.

use serde::Serialize;
use switchyard_core::RunId;
use switchyard_runtime::{Principal, ids};

use super::{Switchyard, caller, to_value};
use crate::Error;

impl Switchyard {
    /// Gives a run news by name. A `wait` node that asks for it goes on, now or when it gets there.
    pub async fn signal(&self, run: RunId, name: &str, payload: impl Serialize) -> Result<(), Error> {
        Ok(self.engine().signal(&caller(), run, &ids::operation_id(), name, &to_value(payload)?).await?)
    }

    /// Closes a run: what runs is stopped, and what had succeeded is undone by its `compensate`. `by` is for the
    /// history.
    pub async fn cancel(&self, run: RunId, by: &str, reason: &str) -> Result<(), Error> {
        Ok(self
            .engine()
            .cancel(&Principal::local(by), run, &ids::operation_id(), reason, true, false)
            .await?)
    }

    /// Starts no further node of a run until it is resumed.
    pub async fn pause(&self, run: RunId, by: &str) -> Result<(), Error> {
        Ok(self.engine().pause(&Principal::local(by), run, &ids::operation_id()).await?)
    }

    /// Takes back a pause.
    pub async fn resume(&self, run: RunId, by: &str) -> Result<(), Error> {
        Ok(self.engine().resume(&Principal::local(by), run, &ids::operation_id()).await?)
    }

    /// Starts a failed or cancelled run over, from what failed.
    pub async fn retry(&self, run: RunId, by: &str) -> Result<(), Error> {
        Ok(self.engine().retry(&Principal::local(by), run, &ids::operation_id()).await?)
    }
}
