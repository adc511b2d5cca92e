//! The injected clock: the time of runs comes from here and nowhere else. How long one execution may take is
//! measured by the machine that executes it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use switchyard_core::Timestamp;
use tokio::sync::watch;

#[async_trait]
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    fn now(&self) -> Timestamp;

    /// Returns once `now() >= until`.
    async fn sleep_until(&self, until: Timestamp);
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep_until(&self, until: Timestamp) {
        // In pieces, because the machine's clock can be set while we sleep.
        const PIECE: Duration = Duration::from_secs(60);
        loop {
            let left = until.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(PIECE)).await;
        }
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<watch::Sender<Timestamp>>,
}

impl ManualClock {
    pub fn starting_at(now: Timestamp) -> Self {
        Self { now: Arc::new(watch::Sender::new(now)) }
    }

    pub fn advance(&self, by: Duration) {
        self.now.send_modify(|now| *now = now.plus(by));
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    async fn sleep_until(&self, until: Timestamp) {
        let mut now = self.now.subscribe();
        // The sender lives in `self`, so the channel cannot close under us.
        let _ = now.wait_for(|now| *now >= until).await;
    }
}
