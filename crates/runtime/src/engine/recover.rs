//! Filling the hot store from the archive: the code that brings a process back is the code that brings a lost
//! store back.

use std::time::Duration;

use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind, Run, WaitFor};

use super::{Engine, EngineError};

/// What was found unfinished.
#[derive(Debug, Default)]
pub struct Recovered {
    pub runs: usize,
    /// Runs that could not be taken up, and why. They are left as they are; the others go on.
    pub damaged: Vec<(RunId, EngineError)>,
}

impl Engine {
    /// Takes up every run that the archive says is unfinished and the hot store does not have as far as that.
    /// At start, and again whenever the hot store may have lost something; cheap when it has not.
    pub async fn recover(&self) -> Result<Recovered, EngineError> {
        let mut recovered = Recovered::default();
        let mut runs: Vec<Run> = Vec::new();
        let unfinished = self.archive.unfinished().await?;
        for id in self.hot.compare(&unfinished).await? {
            match self.replayed(id).await {
                // It may have come to its end since the archive was asked.
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
        // All at once: a run that ends by being taken up must find its parent in place.
        self.hot.restore(runs).await?;
        Ok(recovered)
    }

    /// The same, if no process has done it within `apart`.
    pub async fn recover_in_turn(&self, apart: Duration) -> Result<Option<Recovered>, EngineError> {
        // A little less, so that a pass after exactly that time is not too early.
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
                // The graph of its children must be known before the next of them starts.
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
