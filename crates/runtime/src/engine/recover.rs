//! Recovery: restores the hot store from the archive, both after a restart of the process and after the loss of the
//! store.

use std::time::Duration;

use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind, Run, WaitFor};

use super::{Engine, EngineError};

/// The unfinished runs that recovery found.
#[derive(Debug, Default)]
pub struct Recovered {
    pub runs: usize,
    /// Runs that could not be restored, and why. They are not changed; the others continue.
    pub damaged: Vec<(RunId, EngineError)>,
}

impl Engine {
    /// Restores every unfinished run of the archive that the hot store lacks or has in an older state. Called at
    /// start, and whenever the hot store may have lost data; cheap when it has not.
    pub async fn recover(&self) -> Result<Recovered, EngineError> {
        let mut recovered = Recovered::default();
        let mut runs: Vec<Run> = Vec::new();
        let unfinished = self.archive.unfinished().await?;
        for id in self.hot.compare(&unfinished).await? {
            match self.replayed(id).await {
                // The run may have ended since the archive was read.
                Ok(run) if run.is_ended() => {}
                Ok(run) => runs.push(run),
                Err(EngineError::Store(error)) if error.is_outage() => return Err(error.into()),
                Err(error) => {
                    tracing::error!(run = %id, %error, "a run could not be taken up");
                    recovered.damaged.push((id, error));
                }
            }
        }
        recovered.runs = runs.len();
        if runs.is_empty() {
            return Ok(recovered);
        }
        // In one call: a run that ends while it is restored must find its parent in the store.
        self.hot.restore(runs).await?;
        Ok(recovered)
    }

    /// Like [`Engine::recover`], but only if no process has done it within `apart`.
    pub async fn recover_in_turn(&self, apart: Duration) -> Result<Option<Recovered>, EngineError> {
        // Slightly shorter, so that a pass after exactly `apart` is not too early.
        if !self.hot.takes_turn("recover", apart * 9 / 10).await? {
            return Ok(None);
        }
        self.recover().await.map(Some)
    }

    async fn replayed(&self, run: RunId) -> Result<Run, EngineError> {
        let events = self.history().events(run, 0, None).await?;
        self.replay(&events).await
    }

    /// Like [`super::History::state`], with the compiled programs of the catalog instead of fresh ones.
    async fn replay(&self, events: &[Event]) -> Result<Run, EngineError> {
        let mut programs = Vec::new();
        for event in events {
            match &event.kind {
                EventKind::RunAccepted(accepted) => {
                    programs.push(self.catalog.get(accepted.definition).await?)
                }
                EventKind::RunPatched(patched) => programs.push(self.catalog.get(patched.definition).await?),
                // The graph of the children must be registered before the next child starts.
                EventKind::NodeWaiting { on: WaitFor::Children(plan), .. } => {
                    self.catalog.get(plan.definition).await?;
                }
                _ => {}
            }
        }
        let find =
            |hash| programs.iter().find(|program| program.hash == hash).map(|program| program.ir.clone());
        Ok(Run::replay(events, &find)?)
    }
}
