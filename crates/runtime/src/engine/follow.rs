//! Following a run: its events from any point on, then live, none missing and none twice.

use std::sync::Arc;

use switchyard_core::RunId;
use switchyard_core::run::Event;
use switchyard_store::{Change, HotStore, StoreError};
use tokio::sync::watch;

use super::{Engine, EngineError, History};

/// The most events that are returned at once, so that a slow reader holds no more than this.
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
        // Subscribes before the first read, so that no event is missed in between.
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
    /// The next events, at most a page; waits until there are some.
    pub async fn next(&mut self) -> Result<Vec<Event>, EngineError> {
        loop {
            let events = self.ready().await?;
            if !events.is_empty() {
                return Ok(events);
            }
            self.news().await?;
        }
    }

    /// The next events that are archived already, at most a page.
    pub async fn ready(&mut self) -> Result<Vec<Event>, EngineError> {
        // Marked before the read: a change during the read wakes the follower again.
        self.news.borrow_and_update();
        let events = self.history.events_page(self.run, self.after, PAGE).await?;
        self.after = events.last().map_or(self.after, |last| last.seq);
        Ok(events)
    }

    /// Resolves once the run has changed since the last read. A separate method, so that a follower of many runs can
    /// wait for all of them at once and read one at a time.
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

/// Asks the hot store why it closed the channel: it does so only when it can no longer write.
async fn why_gone(hot: &Arc<dyn HotStore>, run: RunId) -> EngineError {
    match hot.in_flight(run).await {
        Err(why) => why.into(),
        Ok(_) => StoreError::unavailable("the store no longer tells about this run").into(),
    }
}
