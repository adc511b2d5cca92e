//! Measures how far the archive is behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::Metrics;

/// Measures the events that are not durable yet. Appends become durable in order.
#[derive(Debug)]
pub(crate) struct Lag {
    began: Instant,
    pending: AtomicUsize,
    /// In microseconds since `began`: when the newest durable events were handed over, or the oldest pending ones, if
    /// nothing was pending before them.
    caught_up_to: AtomicU64,
}

impl Default for Lag {
    fn default() -> Self {
        Self { began: Instant::now(), pending: AtomicUsize::new(0), caught_up_to: AtomicU64::new(0) }
    }
}

impl Lag {
    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    pub(crate) fn behind(&self) -> Duration {
        if self.pending() == 0 {
            return Duration::ZERO;
        }
        let caught_up_to = Duration::from_micros(self.caught_up_to.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(caught_up_to)
    }

    fn handed_over(&self, events: usize, at: Instant) {
        if self.pending.fetch_add(events, Ordering::Relaxed) == 0 {
            self.catch_up(at);
        }
    }

    fn catch_up(&self, at: Instant) {
        let micros = at.duration_since(self.began).as_micros();
        self.caught_up_to.fetch_max(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Events that were handed to the archive, until it acknowledges or rejects them.
#[derive(Debug)]
pub struct Commit {
    metrics: Arc<Metrics>,
    events: usize,
    since: Instant,
}

impl Commit {
    pub(crate) fn begin(metrics: Arc<Metrics>, events: usize) -> Self {
        let since = Instant::now();
        metrics.lag.handed_over(events, since);
        Self { metrics, events, since }
    }

    pub fn durable(self) {
        self.metrics.lag.catch_up(self.since);
        self.metrics.archive_events.inc_by(self.events as u64);
        self.metrics.archive_commit.observe(self.since.elapsed().as_secs_f64());
    }
}

impl Drop for Commit {
    /// Runs also when the caller was cancelled.
    fn drop(&mut self) {
        self.metrics.lag.pending.fetch_sub(self.events, Ordering::Relaxed);
    }
}
