//! The duties around workers: report that a worker is alive, remove ghosts, find long-pending entries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use switchyard_observe::Metrics;
use switchyard_store::StoreError;
use tokio_util::sync::CancellationToken;

use super::cleanup::{CleanedUp, CleanupPolicy, LivePods, Pass};
use super::pending::LongPending;
use super::{RedisAdmin, WorkerReport};

/// How long to wait at most after Redis or Kubernetes did not answer.
const AFTER_TROUBLE: Duration = Duration::from_secs(60);
/// The least interval between attempts to take a lock that another process has.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Settings of the checks on consumers, and how often they run.
#[derive(Clone, Copy, Debug)]
pub struct MonitorSettings {
    pub cleanup: CleanupPolicy,
    /// How long an entry may be pending before it is reported.
    pub long: Duration,
    /// How often to look for such entries; never if `None`.
    pub watch_every: Option<Duration>,
}

/// Runs the checks on consumers in this process.
#[derive(Clone, Debug)]
pub struct ConsumerMonitor {
    pub admin: RedisAdmin,
    pub metrics: Arc<Metrics>,
    /// Lists the pods of workers, on Kubernetes.
    pub pods: Option<Arc<dyn LivePods>>,
    pub settings: MonitorSettings,
}

impl RedisAdmin {
    /// Reports at an interval that a worker is alive. The caller signs off after stopping this.
    pub async fn report_forever(
        self,
        report: impl Fn() -> WorkerReport + Send,
        every: Duration,
        stop: CancellationToken,
    ) {
        while !stop.is_cancelled() {
            if let Err(error) = self.report(&report()).await {
                tracing::warn!(%error, "a worker could not say that it is alive");
            }
            pause(every, &stop).await;
        }
    }
}

impl ConsumerMonitor {
    /// The duty: removes ghosts, at once if the last pass was long ago, and then at an interval.
    pub async fn clean_up_forever(self, stop: CancellationToken) {
        let every = self.settings.cleanup.every;
        while !stop.is_cancelled() {
            let wait = match self.clean_up().await {
                Ok(Pass::Made(_)) => every,
                Ok(Pass::NotNow(wait)) => wait.clamp(ASK_EVERY, every.max(ASK_EVERY)),
                Err(error) => {
                    tracing::error!(%error, "the group could not be compared with the workers that are alive");
                    every.min(AFTER_TROUBLE)
                }
            };
            pause(wait, &stop).await;
        }
    }

    /// Makes one pass that removes ghosts, with metrics and logs.
    pub async fn clean_up(&self) -> Result<Pass<CleanedUp>, StoreError> {
        let pass = self.admin.clean_up(&self.settings.cleanup, self.pods.as_deref()).await;
        match &pass {
            Ok(Pass::Made(done)) => self.tell_cleaned_up(done),
            Ok(Pass::NotNow(_)) => {}
            Err(_) => self.metrics.consumer_scan_failed(),
        }
        pass
    }

    fn tell_cleaned_up(&self, done: &CleanedUp) {
        let moved = done.moved();
        self.metrics.consumers_scanned(done.ghosts.len(), done.deleted(), done.errors());
        self.metrics.entries_moved(moved.returned, moved.claimed, moved.void);
        for ghost in &done.ghosts {
            let (stream, consumer) = (&ghost.consumer.stream, &ghost.consumer.name);
            let (pending, idle_ms) = (ghost.consumer.pending, ghost.consumer.idle_ms);
            match &ghost.error {
                Some(error) => {
                    tracing::error!(stream, consumer, %error, "a ghost could not be taken out of the group")
                }
                None if ghost.deleted => tracing::info!(
                    stream,
                    consumer,
                    idle_ms,
                    returned = ghost.returned,
                    claimed = ghost.claimed,
                    void = ghost.void,
                    "a ghost was taken out of the group"
                ),
                None => tracing::warn!(stream, consumer, idle_ms, pending, "there is a ghost in the group"),
            }
        }
    }

    /// The duty: looks for long-pending entries at an interval.
    pub async fn watch_forever(self, stop: CancellationToken) {
        let Some(every) = self.settings.watch_every else { return };
        while !stop.is_cancelled() {
            let wait = match self.watch(every).await {
                Ok(Pass::Made(_)) => every,
                Ok(Pass::NotNow(wait)) => wait.clamp(ASK_EVERY, every.max(ASK_EVERY)),
                Err(error) => {
                    tracing::error!(%error, "streams could not be looked through");
                    every.min(AFTER_TROUBLE)
                }
            };
            pause(wait, &stop).await;
        }
    }

    /// Makes one pass that looks for long-pending entries, with metrics and logs.
    pub async fn watch(&self, every: Duration) -> Result<Pass<LongPending>, StoreError> {
        let MonitorSettings { long, cleanup, .. } = self.settings;
        let pass = self.admin.watch_in_turn(long, cleanup.lock, every).await?;
        if let Pass::Made(found) = &pass {
            self.tell_long_pending(found);
        }
        Ok(pass)
    }

    fn tell_long_pending(&self, found: &LongPending) {
        let mut counts: BTreeMap<(Arc<str>, &'static str), usize> = BTreeMap::new();
        for entry in &found.entries {
            *counts.entry((entry.queue.clone(), entry.priority)).or_default() += 1;
        }
        let counts: Vec<_> = counts.into_iter().map(|((queue, band), count)| (queue, band, count)).collect();
        self.metrics.long_pending(&counts);
        self.metrics.entries_moved(0, 0, found.void);
        for entry in &found.entries {
            let (stream, consumer, run, node) = (&entry.stream, &entry.consumer, &entry.run, &entry.node);
            let (idle_ms, held) = (entry.idle_ms, entry.held);
            tracing::warn!(stream, consumer, run, node, idle_ms, held, "an entry is pending for long");
        }
    }
}

async fn pause(length: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(length) => {}
        () = stop.cancelled() => {}
    }
}
