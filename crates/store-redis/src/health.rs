//! Tracks whether Redis carries out calls: counts failures in metrics, logs when they begin and when they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::RedisError;
use switchyard_observe::Metrics;
use switchyard_redis::{RedisFailure, detail};
use switchyard_store::StoreError;
use tokio::time::Instant;

/// How often at most an intermittent failure is logged.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The health of one server, as the calls of this process find it.
#[derive(Debug)]
pub(crate) struct Health {
    server: String,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    /// Whether `state` has a failure, so that a successful call need not lock it.
    is_failing: AtomicBool,
    /// The number of the newest connection.
    newest: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    failure: Option<RedisFailure>,
    logged: Option<(RedisFailure, Instant)>,
}

impl State {
    /// Whether to log a failure: not if the same one was logged lately, even if other calls succeeded in between.
    fn is_to_be_logged(&mut self, failure: RedisFailure) -> bool {
        let lately = |(logged, at): (RedisFailure, Instant)| logged == failure && at.elapsed() < LOG_EVERY;
        let again = !self.logged.is_some_and(lately);
        if again {
            self.logged = Some((failure, Instant::now()));
        }
        again
    }
}

impl Health {
    pub(crate) fn new(server: String, metrics: Arc<Metrics>) -> Self {
        metrics.redis_is_up(true);
        let (state, is_failing, newest) = Default::default();
        Self { server, metrics, state, is_failing, newest }
    }

    /// The server's name, for messages.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Notes that a call uses this connection.
    pub(crate) fn connected(&self, number: u64) {
        if self.newest.load(Ordering::Relaxed) != number
            && self.newest.fetch_max(number, Ordering::Relaxed) < number
            && number > 1
        {
            self.metrics.redis_reconnected();
        }
    }

    /// Notes that a call was answered.
    pub(crate) fn answered(&self) {
        if self.is_failing.load(Ordering::Relaxed) && self.state.lock().failure.take().is_some() {
            self.is_failing.store(false, Ordering::Relaxed);
            self.metrics.redis_is_up(true);
            tracing::info!("Redis at {} answers again", self.server);
        }
    }

    /// Notes that a call failed, or had no connection. Logs the first failure, not every call.
    pub(crate) fn failed(&self, error: &RedisError) -> RedisFailure {
        let failure = RedisFailure::of(error);
        if failure == RedisFailure::Other {
            return failure;
        }
        let mut state = self.state.lock();
        let is_new = state.failure.replace(failure) != Some(failure);
        let is_logged = is_new && state.is_to_be_logged(failure);
        self.is_failing.store(true, Ordering::Relaxed);
        drop(state);
        self.metrics.redis_failed(failure.as_str());
        if is_new {
            self.metrics.redis_is_up(false);
        }
        if is_logged {
            tracing::error!("{}", self.explain(failure, error));
        }
        failure
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.state.lock().failure == Some(RedisFailure::Loading)
    }

    /// The error for a caller, without the password.
    pub(crate) fn explain(&self, failure: RedisFailure, error: &RedisError) -> StoreError {
        let (server, sentence) = (&self.server, failure.sentence());
        StoreError::unavailable(format!("Redis at {server} {sentence}: {}", detail(error)))
    }
}
