//! Retries while Redis does not answer, as `REDIS_SEND_MESSAGE_*` configures them.

use std::time::Duration;

use switchyard_store::{Clock, StoreError, SystemClock};

use crate::store::RedisStore;

/// How often a call is retried, and after which delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    pub retries: u32,
    /// The delay before the first retry.
    pub delay: Duration,
    /// The factor by which each delay is longer than the one before.
    pub backoff: f64,
}

impl RetryPolicy {
    pub const NONE: Self = Self { retries: 0, delay: Duration::ZERO, backoff: 1.0 };

    fn wait_before(&self, retry: u32) -> Duration {
        let factor = self.backoff.powi(i32::try_from(retry).unwrap_or(i32::MAX));
        // A delay that overflows is longer than any sensible one.
        Duration::try_from_secs_f64(self.delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
    }
}

impl RedisStore {
    /// Makes an idempotent call, and retries it while the store does not answer.
    pub(crate) async fn with_retry<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        for retry in 0..self.retry.retries {
            match attempt().await {
                Err(why) if why.is_outage() => {
                    let wait = self.retry.wait_before(retry);
                    tracing::warn!(%why, wait_ms = wait.as_millis(), "a submission is tried again");
                    self.wait(wait).await;
                }
                answer => return answer,
            }
        }
        attempt().await
    }

    async fn wait(&self, length: Duration) {
        let clock: &dyn Clock = self.clock.as_deref().unwrap_or(&SystemClock);
        clock.sleep(length).await;
    }
}
