//! Entries that are pending for longer than a task may take.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use switchyard_store::StoreError;

use super::cleanup::Pass;
use super::{RedisAdmin, millis};
use crate::lock::{FencedLock, Taken};
use crate::scripts;

/// Entries of a stream that are shown; how many there are beyond that is not looked up.
const PER_STREAM: usize = 1_000;

/// An entry that is pending for long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pending {
    pub stream: String,
    pub queue: Arc<str>,
    pub priority: &'static str,
    pub entry: String,
    pub consumer: String,
    pub idle_ms: u64,
    pub deliveries: u64,
    /// Whether the run knows of it: its claim has a lease. If not, a plain worker has read it and said nothing since.
    pub held: bool,
    pub run: String,
    pub node: String,
}

/// What one look came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongPending {
    pub entries: Vec<Pending>,
    /// Entries of runs that have moved on.
    pub void: usize,
}

impl RedisAdmin {
    /// Looks, and changes nothing.
    pub async fn long_pending(&self, longer_than: Duration) -> Result<LongPending, StoreError> {
        self.look_through(longer_than, false).await
    }

    /// Looks in turn with other processes, and removes what is void.
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
        let found = self.look_through(longer_than, true).await;
        lock.release(fence).await?;
        Ok(Pass::Made(found?))
    }

    async fn look_through(&self, longer_than: Duration, clears: bool) -> Result<LongPending, StoreError> {
        let mut found = LongPending::default();
        let args = [
            self.keys.begin().to_owned(),
            millis(longer_than),
            PER_STREAM.to_string(),
            if clears { "1" } else { "0" }.to_owned(),
        ];
        type Row = (String, String, u64, u64, String, String, String);
        for stream in self.streams().await? {
            let (void, rows): (usize, Vec<Row>) =
                self.client.run(&scripts::PENDING, std::slice::from_ref(&stream), &args).await?;
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
