//! Puts back tasks that a plain worker has read and never reported on.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::RunId;
use switchyard_store::StoreError;

use super::words;
use crate::keys::{BANDS, GROUP};
use crate::scripts;
use crate::slow_path::ReadSet;
use crate::store::RedisStore;

/// The consumer that holds tasks while they are put back.
pub(crate) const TAKER: &str = "switchyard";
/// How many entries one call examines.
const AT_ONCE: usize = 500;

/// Longer than any worker can be silent.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

type Lost = (String, String, String, String);

impl RedisStore {
    /// Creates the groups, so that plain readers find them.
    pub(crate) async fn make_groups(&self) -> Result<(), StoreError> {
        let streams: Vec<String> = (0..BANDS.len()).map(|band| self.keys.tasks("function", band)).collect();
        self.client.query::<u32>(redis::cmd("SADD").arg(self.keys.streams()).arg(&streams)).await?;
        for stream in streams {
            // The pass creates the group.
            self.look_for_lost(&stream, "+", FOR_EVER).await?;
        }
        Ok(())
    }

    pub(super) async fn take_back_lost(&self, silence: Duration) -> Result<usize, StoreError> {
        let mut put_back = 0;
        for stream in self.streams().await? {
            let mut from = "-".to_owned();
            while !from.is_empty() {
                let (next, lost) = self.look_for_lost(&stream, &from, silence).await?;
                for (entry, run, node, reader) in lost {
                    put_back += usize::from(self.put_back(&stream, &entry, &run, &node, reader).await?);
                }
                from = next;
            }
        }
        Ok(put_back)
    }

    async fn look_for_lost(
        &self,
        stream: &str,
        from: &str,
        silence: Duration,
    ) -> Result<(String, Vec<Lost>), StoreError> {
        let keys = [stream.to_owned(), self.keys.queued(), self.keys.wake()];
        let args = [
            self.keys.begin().to_owned(),
            from.to_owned(),
            AT_ONCE.to_string(),
            silence.as_millis().to_string(),
            TAKER.to_owned(),
        ];
        self.client.run(&scripts::LOST, &keys, &args).await
    }

    /// Puts a task back as a new entry, so that readers of new entries find it.
    async fn put_back(
        &self,
        stream: &str,
        entry: &str,
        run: &str,
        node: &str,
        reader: String,
    ) -> Result<bool, StoreError> {
        let Ok(run) = run.parse::<RunId>() else { return Ok(false) };
        let with = vec![words(["XACK", stream, GROUP, entry]), words(["XDEL", stream, entry])];
        let reader: Arc<str> = reader.into();
        let read_set = ReadSet { with, ..ReadSet::run(run) };
        self.decide(read_set, |in_flight, now, out| in_flight.lose_node(run, node, &reader, now, out)).await
    }

    /// Every registered stream of tasks, sorted.
    pub(super) async fn streams(&self) -> Result<Vec<String>, StoreError> {
        let mut streams: Vec<String> =
            self.client.query(redis::cmd("SMEMBERS").arg(self.keys.streams())).await?;
        streams.sort_unstable();
        Ok(streams)
    }
}
