//! Trying again while Redis does not answer: what `REDIS_SEND_MESSAGE_*` sets.

use std::time::Duration;

use switchyard_store::{Clock, StoreError, SystemClock};

use crate::store::RedisStore;

/// How often something is tried again, and after how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    pub retries: u32,
    /// Before the first.
    pub delay: Duration,
    /// How many times as long each wait is as the one before.
    pub backoff: f64,
}

impl RetryPolicy {
    pub const NONE: Self = Self { retries: 0, delay: Duration::ZERO, backoff: 1.0 };

    fn wait_before(&self, retry: u32) -> Duration {
        let factor = self.backoff.powi(i32::try_from(retry).unwrap_or(i32::MAX));
        // Beyond any wait that makes sense there is no telling them apart.
        Duration::try_from_secs_f64(self.delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
    }
}

impl RedisStore {
    /// Does something that may be done twice, again and again while the store does not answer.
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
