//! Following a run: its events from any point on, then live, none missing and none twice.

use switchyard_core::RunId;
use switchyard_core::run::Event;
use switchyard_store::{Change, StoreError};
use tokio::sync::watch;

use super::{Engine, EngineError, History};

#[derive(Debug)]
pub struct Follow {
    history: History,
    run: RunId,
    after: u64,
    news: watch::Receiver<Change>,
}

impl Engine {
    /// Follows a run from after event `after` (0: from its beginning).
    pub fn follow(&self, run: RunId, after: u64) -> Follow {
        // Subscribed before the first read, so that nothing falls between.
        Follow { history: self.history().clone(), run, after, news: self.hot.follow(run) }
    }
}

impl Engine {
    /// Returns once a run has ended.
    pub async fn wait_for_end(&self, run: RunId) -> Result<(), EngineError> {
        let mut news = self.hot.follow(run);
        if !self.hot.in_flight(run).await? {
            return match self.archive.run(run).await? {
                Some(record) if record.status.is_terminal() => Ok(()),
                Some(_) => Err(EngineError::BadRequest(format!("{run} is not in flight here"))),
                None => Err(EngineError::UnknownRun(run)),
            };
        }
        if news.wait_for(|change| change.ended).await.is_err() {
            self.hot.in_flight(run).await?;
            return Err(store_is_gone());
        }
        Ok(())
    }
}

impl Follow {
    /// The next events; waits until there are some.
    pub async fn next(&mut self) -> Result<Vec<Event>, EngineError> {
        loop {
            self.news.borrow_and_update();
            let events = self.history.events(self.run, self.after, None).await?;
            if let Some(last) = events.last() {
                self.after = last.seq;
                return Ok(events);
            }
            if self.news.changed().await.is_err() {
                return Err(store_is_gone());
            }
        }
    }
}

/// A store stops telling only when it can keep nothing any more.
fn store_is_gone() -> EngineError {
    StoreError::unavailable("the store takes nothing any more, so the run cannot be followed").into()
}
