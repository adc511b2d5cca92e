//! Admin queries and actions: which workers a Redis has, and what is stored in it. They need no archive.

mod archive;
mod cleanup;
mod clear;
mod consumers;
mod duty;
mod examine;
mod inspect;
mod leave;
mod pending;
mod workers;

use std::sync::Arc;

use switchyard_core::Timestamp;
use switchyard_observe::Observe;
use switchyard_store::{Clock, StoreError};

use crate::client::Client;
use crate::keys::Keys;

pub use archive::Bound;
pub use cleanup::{CleanedUp, CleanupPolicy, Ghost, LivePods, Pass};
pub use clear::Holdings;
pub use consumers::{Consumer, ConsumerStatus};
pub use duty::{ConsumerMonitor, MonitorSettings};
pub use inspect::InspectedKey;
pub use leave::Left;
pub use pending::{LongPending, Pending};
pub use workers::{Worker, WorkerReport};

/// Admin queries and actions on one Redis; they need no archive.
#[derive(Clone, Debug)]
pub struct RedisAdmin {
    pub(crate) client: Client,
    pub(crate) keys: Keys,
    /// The token of this process as the owner of locks.
    name: Arc<str>,
    /// Replaces the server's clock, in tests.
    clock: Option<Arc<dyn Clock>>,
}

impl RedisAdmin {
    /// Connects without a store.
    pub async fn connect(url: &str, prefix: &str) -> Result<Self, StoreError> {
        Ok(Self::new(
            Client::connect(url, Observe::default().metrics().clone()).await?,
            Keys::new(prefix, 0, 1),
            None,
        ))
    }

    /// Sets which functions plain workers serve, as [`crate::RedisSettings::plain_functions`] does.
    pub fn with_plain_functions(self, functions: &[String]) -> Self {
        Self { keys: self.keys.with_plain_functions(functions), ..self }
    }

    pub(crate) fn new(client: Client, keys: Keys, clock: Option<Arc<dyn Clock>>) -> Self {
        let name = format!("{:016x}", rand::random::<u64>()).into();
        Self { client, keys, name, clock }
    }

    /// The time argument of a script; empty for the server's clock.
    fn time(&self) -> String {
        self.clock.as_ref().map_or_else(String::new, |clock| clock.now().as_millis().to_string())
    }

    /// The current time of the scripts: the server's, or that of the injected clock.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        if let Some(clock) = &self.clock {
            return Ok(clock.now());
        }
        let (seconds, micros): (i64, i64) = self.client.query(&redis::cmd("TIME")).await?;
        Ok(Timestamp::from_millis(seconds * 1_000 + micros / 1_000))
    }

    /// Every stream of tasks, sorted: those that graphs use, and those with entries.
    pub async fn streams(&self) -> Result<Vec<String>, StoreError> {
        let mut ask = redis::pipe();
        ask.smembers(self.keys.streams()).hkeys(self.keys.queued());
        let (known, queued): (Vec<String>, Vec<String>) = self.client.query_all(&ask).await?;
        let mut streams: Vec<String> = known.into_iter().chain(queued).collect();
        streams.retain(|stream| self.keys.queue_of(stream).is_some());
        streams.sort_unstable();
        streams.dedup();
        Ok(streams)
    }

    /// Queue and priority of a stream.
    fn queue_of(&self, stream: &str) -> (Arc<str>, &'static str) {
        let (queue, band) = self.keys.queue_of(stream).unwrap_or((stream, 1));
        (queue.into(), PRIORITIES[band])
    }
}

/// The names of the bands.
const PRIORITIES: [&str; 3] = ["high", "normal", "low"];

fn millis(length: std::time::Duration) -> String {
    length.as_millis().to_string()
}

fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("Redis answered something else than expected: {error}"))
}
