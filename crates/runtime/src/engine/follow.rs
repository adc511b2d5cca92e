//! Following a run: its events from any point on, then live, none missing and none twice.

use std::sync::Arc;

use switchyard_core::RunId;
use switchyard_core::run::Event;
use switchyard_store::{Change, HotStore, StoreError};
use tokio::sync::watch;

use super::{Engine, EngineError, History};

/// How many events are handed out at once: a slow reader holds no more than this.
const PAGE: usize = 256;

pub struct Follow {
    hot: Arc<dyn HotStore>,
    history: History,
    run: RunId,
    after: u64,
    news: watch::Receiver<Change>,
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follow").field("run", &self.run).field("after", &self.after).finish_non_exhaustive()
    }
}

impl Engine {
    /// Follows a run from after event `after` (0: from its beginning).
    pub fn follow(&self, run: RunId, after: u64) -> Follow {
        // Subscribed before the first read, so that nothing falls between.
        Follow {
            hot: self.hot.clone(),
            history: self.history().clone(),
            run,
            after,
            news: self.hot.follow(run),
        }
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
            return Err(why_gone(&self.hot, run).await);
        }
        Ok(())
    }
}

impl Follow {
    /// The next events, a page of them at most; waits until there are some.
    pub async fn next(&mut self) -> Result<Vec<Event>, EngineError> {
        loop {
            let events = self.ready().await?;
            if !events.is_empty() {
                return Ok(events);
            }
            self.news().await?;
        }
    }

    /// The next events that are there already, a page of them at most.
    pub async fn ready(&mut self) -> Result<Vec<Event>, EngineError> {
        // Before the read: what happens during it is news again.
        self.news.borrow_and_update();
        let events = self.history.events_page(self.run, self.after, PAGE).await?;
        self.after = events.last().map_or(self.after, |last| last.seq);
        Ok(events)
    }

    /// Resolves once something has happened since the last look. Separate, so that a follower of many runs
    /// waits for all of them at once and reads one at a time.
    pub fn news(&self) -> impl Future<Output = Result<(), EngineError>> + Send + use<> {
        let (mut news, hot, run) = (self.news.clone(), self.hot.clone(), self.run);
        async move {
            match news.changed().await {
                Ok(()) => Ok(()),
                Err(_) => Err(why_gone(&hot, run).await),
            }
        }
    }
}

/// A store stops telling only when it can keep nothing any more; asked anything, it says why.
async fn why_gone(hot: &Arc<dyn HotStore>, run: RunId) -> EngineError {
    match hot.in_flight(run).await {
        Err(why) => why.into(),
        Ok(_) => StoreError::unavailable("the store no longer tells about this run").into(),
    }
}
