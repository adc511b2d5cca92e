//! Reads runs: lists, states, pages of events.

use switchyard_api::RunAt;
use switchyard_core::RunId;
use switchyard_core::run::{Event, Run};
use switchyard_store::{COUNTED_MAX, Page, RunCount, RunFilter, RunRecord, Size, StoreError, Unfinished};

use super::{Engine, EngineError, History};

impl History {
    /// The row of a run.
    pub async fn run(&self, run: RunId) -> Result<RunRecord, EngineError> {
        self.archive.run(run).await?.ok_or(EngineError::UnknownRun(run))
    }

    /// A page of the runs that match a filter.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, EngineError> {
        filter.check().map_err(|bad| EngineError::BadRequest(bad.to_string()))?;
        Ok(self.archive.runs(filter).await?)
    }

    /// The number of runs that match a filter; up to [`COUNTED_MAX`] unless `exact`.
    pub async fn count_runs(&self, filter: &RunFilter, exact: bool) -> Result<RunCount, EngineError> {
        filter.check().map_err(|bad| EngineError::BadRequest(bad.to_string()))?;
        Ok(self.archive.count_runs(filter, (!exact).then_some(COUNTED_MAX)).await?)
    }

    /// Every run that has not ended, oldest first.
    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, EngineError> {
        Ok(self.archive.unfinished().await?)
    }

    /// Every unfinished run that no other run started.
    pub async fn unfinished_roots(&self) -> Result<Vec<RunAt>, EngineError> {
        let mut roots = Vec::new();
        for Unfinished { run, .. } in self.archive.unfinished().await? {
            let record = self.archive.run(run).await?.filter(|record| record.parent.is_none());
            roots.extend(record.map(|record| RunAt { run_id: run, status: record.status }));
        }
        Ok(roots)
    }

    /// The events of a run after `after`, in order, at most `limit`.
    pub async fn events_page(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, EngineError> {
        Ok(self.archive.events(run, after, limit).await?)
    }
}

impl Engine {
    /// The newest state of a run, wherever it lives.
    pub async fn state(&self, run: RunId) -> Result<Run, EngineError> {
        match self.hot.snapshot(run).await {
            Ok(Some(state)) => Ok(state),
            Ok(None) => self.history().state(run, None).await,
            Err(StoreError::Unavailable(why)) => self.state_if_ended(run, why).await,
            Err(error) => Err(error.into()),
        }
    }

    /// The state of an ended run while the hot store does not answer. The archive may lag behind an unfinished run,
    /// so its state is not shown.
    async fn state_if_ended(&self, run: RunId, why: String) -> Result<Run, EngineError> {
        match self.archive.run(run).await? {
            Some(record) if record.status.is_terminal() => self.history().state(run, None).await,
            Some(_) => Err(StoreError::Unavailable(why).into()),
            None => Err(EngineError::UnknownRun(run)),
        }
    }

    /// Whether a run is in flight. If it is not, its end is in the archive by the time of the answer.
    pub async fn in_flight(&self, run: RunId) -> Result<bool, EngineError> {
        Ok(self.hot.in_flight(run).await?)
    }

    /// The state of a run in flight.
    pub async fn in_flight_state(&self, run: RunId) -> Result<Option<Run>, EngineError> {
        Ok(self.hot.snapshot(run).await?)
    }

    /// The number of runs and timers in flight.
    pub async fn size(&self) -> Result<Size, EngineError> {
        Ok(self.hot.size().await?)
    }
}
