//! Finds entries that are pending for longer than a task may take.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use switchyard_redis::{FencedLock, Taken};
use switchyard_store::StoreError;

use super::cleanup::Pass;
use super::{RedisAdmin, millis};
use crate::scripts;

/// How many entries of a stream are listed; further ones are not counted.
const PER_STREAM: usize = 1_000;

/// A long-pending entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pending {
    pub stream: String,
    pub queue: Arc<str>,
    pub priority: &'static str,
    pub entry: String,
    pub consumer: String,
    pub idle_ms: u64,
    pub deliveries: u64,
    /// Whether a claim with a lease is based on the entry. If not, a plain worker has read it and not reported since.
    pub held: bool,
    pub run: String,
    pub node: String,
}

/// The result of one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongPending {
    pub entries: Vec<Pending>,
    /// The number of outdated entries, whose runs have moved on.
    pub void: usize,
}

impl RedisAdmin {
    /// Lists entries that are pending for longer than this. Changes nothing.
    pub async fn long_pending(&self, longer_than: Duration) -> Result<LongPending, StoreError> {
        self.look_through(longer_than, None).await
    }

    /// Like [`Self::long_pending`], under the lock, and removes void entries.
    pub(super) async fn watch_in_turn(
        &self,
        longer_than: Duration,
        lock_ttl: Duration,
        every: Duration,
    ) -> Result<Pass<LongPending>, StoreError> {
        let lock = FencedLock::new(&self.client, self.keys.watch_lock());
        let fence = match lock.take(&self.name, self.time(), lock_ttl, every).await? {
            Taken::Ours { fence } => fence,
            Taken::NotBefore(wait) => return Ok(Pass::NotNow(wait)),
        };
        let found = self.look_through(longer_than, Some(fence)).await;
        lock.release(fence).await?;
        Ok(Pass::Made(found?))
    }

    async fn look_through(
        &self,
        longer_than: Duration,
        fence: Option<u64>,
    ) -> Result<LongPending, StoreError> {
        let mut found = LongPending::default();
        let args = [
            self.keys.begin().to_owned(),
            millis(longer_than),
            PER_STREAM.to_string(),
            fence.map_or_else(String::new, |fence| fence.to_string()),
        ];
        type Row = (String, String, u64, u64, String, String, String);
        for stream in self.streams().await? {
            let keys = [stream.clone(), self.keys.watch_lock()];
            let (void, rows): (usize, Vec<Row>) = self.client.run(&scripts::PENDING, &keys, &args).await?;
            found.void += void;
            let (queue, priority) = self.queue_of(&stream);
            found.entries.extend(rows.into_iter().map(|row| {
                let (entry, consumer, idle_ms, deliveries, what, run, node) = row;
                let (stream, queue, held) = (stream.clone(), queue.clone(), what == "held");
                Pending { stream, queue, priority, entry, consumer, idle_ms, deliveries, held, run, node }
            }));
        }
        Ok(found)
    }
}
