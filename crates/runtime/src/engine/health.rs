//! Health of the stores, and the gauges that metrics show of them.

use std::time::Duration;

use switchyard_observe::{Behind, Gauges};
use switchyard_store::{PRIORITIES, StoreError, Unarchived};

use super::{Engine, EngineError};

/// Why the engine accepts no changes at the moment.
#[derive(Debug)]
pub enum NotReady {
    HotStore(StoreError),
    Archive(StoreError),
    /// The outbox does not reach the archive, so decisions and submissions would time out.
    OutboxStuck(Unarchived),
}

impl Engine {
    /// Checks that both stores accept writes. Each has `within` to answer.
    pub async fn ready(&self, within: Duration) -> Result<(), NotReady> {
        answers(within, self.hot.ready()).await.map_err(NotReady::HotStore)?;
        // An empty append is acknowledged once everything before it is durable: it fails if the archive cannot write.
        answers(within, self.archive.append(Vec::new())).await.map_err(NotReady::Archive)?;
        match tokio::time::timeout(within, self.hot.unarchived()).await {
            Ok(Ok(Some(behind))) if behind.stuck.is_some() => Err(NotReady::OutboxStuck(behind)),
            _ => Ok(()),
        }
    }

    /// The figures that metrics show of the stores.
    pub async fn gauges(&self) -> Result<Gauges, EngineError> {
        let (size, queues) = (self.hot.size().await?, self.hot.queues().await?);
        let unarchived = self.hot.unarchived().await?;
        let depths = queues.iter().flat_map(|depth| {
            let bands = PRIORITIES.iter().zip(depth.bands);
            bands.map(|(priority, band_depth)| (depth.queue.clone(), *priority, band_depth.waiting))
        });
        let behind = unarchived.map(|unarchived| Behind {
            changes: unarchived.changes,
            oldest: unarchived.oldest,
            stuck: unarchived.stuck.is_some(),
        });
        Ok(Gauges { runs: size.runs, timers: size.timers, depths: depths.collect(), behind })
    }
}

async fn answers(
    within: Duration,
    answer: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let answer = tokio::time::timeout(within, answer).await;
    answer.unwrap_or_else(|_| Err(StoreError::unavailable("no answer in time")))
}
