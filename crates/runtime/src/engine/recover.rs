//! Filling the hot store from the archive: the code that brings a process back is the code that brings a lost
//! store back.

use switchyard_core::run::Run;

use super::{Engine, EngineError};

impl Engine {
    /// Takes up every run that the archive says is unfinished. How many there were.
    pub async fn recover(&self) -> Result<usize, EngineError> {
        let unfinished = self.archive.unfinished().await?;
        let mut runs: Vec<Run> = Vec::with_capacity(unfinished.len());
        for id in unfinished {
            let events = self.history().events(id, 0, None).await?;
            runs.push(self.replay(&events).await?);
        }
        let count = runs.len();
        // All at once: a run that ends by being taken up must find its parent in place.
        self.hot.restore(runs).await?;
        Ok(count)
    }

    /// Like [`super::History::state`], with the compiled programs of the catalog instead of fresh ones.
    async fn replay(&self, events: &[switchyard_core::run::Event]) -> Result<Run, EngineError> {
        use switchyard_core::run::EventKind;
        let mut irs = Vec::new();
        for event in events {
            match &event.kind {
                EventKind::RunAccepted(accepted) => irs.push(self.catalog.get(accepted.definition).await?),
                EventKind::RunPatched(patched) => irs.push(self.catalog.get(patched.definition).await?),
                // The graph of its children must be known before the next of them starts.
                EventKind::NodeWaiting { on: switchyard_core::run::WaitFor::Children(plan), .. } => {
                    drop(self.catalog.get(plan.definition).await?)
                }
                _ => {}
            }
        }
        let find = |hash| irs.iter().find(|program| program.hash == hash).map(|program| program.ir.clone());
        Ok(Run::replay(events, &find)?)
    }
}
