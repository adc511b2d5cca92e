//! The connection that everything which answers at once shares. Made at the first call, and again when it is of no use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, RedisResult};
use switchyard_observe::Metrics;
use tokio::time::Instant;

use crate::error::RedisFailure;

/// How long a connection may take, and how long an answer.
pub(crate) const CONNECT: Duration = Duration::from_secs(2);
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// The same trouble that comes and goes is said this often.
const SAY_EVERY: Duration = Duration::from_secs(60);

pub(crate) struct SharedConnection {
    client: redis::Client,
    location: String,
    metrics: Arc<Metrics>,
    current: Mutex<Current>,
    /// Whether `current` has a trouble, for those who only want to say that all is well.
    in_trouble: AtomicBool,
    /// Held while connecting, so that many callers make one connection; and how the last attempt failed.
    connecting: tokio::sync::Mutex<Option<(Instant, RedisError)>>,
}

#[derive(Default)]
struct Current {
    connection: Option<MultiplexedConnection>,
    /// Which connection it is: a caller that found an older one broken does not discard a newer one.
    number: u64,
    /// What is wrong with the server at the moment.
    trouble: Option<RedisFailure>,
    said: Option<(RedisFailure, Instant)>,
}

impl Current {
    /// Something may go well in between, such as what needs a right that the user has.
    fn is_to_be_said(&mut self, trouble: RedisFailure) -> bool {
        let lately = |(said, at): (RedisFailure, Instant)| said == trouble && at.elapsed() < SAY_EVERY;
        let again = !self.said.is_some_and(lately);
        if again {
            self.said = Some((trouble, Instant::now()));
        }
        again
    }
}

impl SharedConnection {
    pub(crate) fn new(client: redis::Client, location: String, metrics: Arc<Metrics>) -> Self {
        let (current, connecting, in_trouble) = Default::default();
        metrics.redis_is_up(true);
        Self { client, location, metrics, current, in_trouble, connecting }
    }

    pub(crate) async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        if let Some(connected) = self.connected() {
            return Ok(connected);
        }
        let asked_at = Instant::now();
        let mut last_failure = self.connecting.lock().await;
        if let Some(connected) = self.connected() {
            return Ok(connected);
        }
        // Those who waited for an attempt share how it went: a server that is not there is not asked by each in turn.
        if let Some((_, error)) = last_failure.as_ref().filter(|(at, _)| *at >= asked_at) {
            return Err(error.clone());
        }
        match self.connect().await {
            Ok(connection) => {
                *last_failure = None;
                Ok(self.take_up(connection))
            }
            Err(error) => {
                *last_failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn connected(&self) -> Option<(u64, MultiplexedConnection)> {
        let current = self.current.lock();
        Some((current.number, current.connection.clone()?))
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER));
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    fn take_up(&self, connection: MultiplexedConnection) -> (u64, MultiplexedConnection) {
        let mut current = self.current.lock();
        current.number += 1;
        current.connection = Some(connection.clone());
        if current.number > 1 {
            self.metrics.redis_reconnected();
        }
        (current.number, connection)
    }

    /// A call was answered.
    pub(crate) fn answered(&self) {
        if self.in_trouble.load(Ordering::Relaxed) && self.current.lock().trouble.take().is_some() {
            self.in_trouble.store(false, Ordering::Relaxed);
            self.metrics.redis_is_up(true);
            tracing::info!("Redis at {} answers again", self.location);
        }
    }

    /// A call failed on this connection, or on the way to one. What is wrong is said when it begins, not for every call.
    pub(crate) fn failed(&self, number: Option<u64>, error: &RedisError) -> RedisFailure {
        let trouble = RedisFailure::of(error);
        if trouble == RedisFailure::Other {
            return trouble;
        }
        let mut current = self.current.lock();
        if trouble.ends_the_connection() && number == Some(current.number) {
            current.connection = None;
        }
        let news = current.trouble.replace(trouble) != Some(trouble);
        let said = news && current.is_to_be_said(trouble);
        self.in_trouble.store(true, Ordering::Relaxed);
        drop(current);
        self.metrics.redis_failed(trouble.as_str());
        if news {
            self.metrics.redis_is_up(false);
        }
        if said {
            tracing::error!("{}", trouble.told(&self.location, error));
        }
        trouble
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.current.lock().trouble == Some(RedisFailure::Loading)
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// A connection of its own for a command that waits.
    pub(crate) async fn another(&self) -> RedisResult<MultiplexedConnection> {
        self.connect().await
    }

    /// A connection of its own for what is published.
    pub(crate) async fn listening(&self) -> RedisResult<redis::aio::PubSub> {
        match tokio::time::timeout(CONNECT, self.client.get_async_pubsub()).await {
            Ok(connected) => connected,
            Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
        }
    }
}
