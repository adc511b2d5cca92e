//! Statistics of all threads of a namespace.

use crate::error::Error;
use crate::store::Checkpoints;

#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Stats {
    pub threads: u64,
    pub checkpoints: u64,
    pub values: u64,
    pub tasks: u64,
    pub bytes: u64,
    /// The largest thread, and its size below.
    pub largest_thread: Option<String>,
    pub largest_bytes: u64,
    pub oldest_at_ms: Option<i64>,
    pub newest_at_ms: Option<i64>,
    /// Number of threads whose keys expire, that do not expire, and whose keys do not expire together.
    pub threads_with_ttl: u64,
    pub threads_without_ttl: u64,
    pub threads_with_uneven_ttl: u64,
}

impl Checkpoints {
    /// Collects the statistics by reading every thread.
    pub async fn stats(&self) -> Result<Stats, Error> {
        let mut stats = Stats::default();
        for thread in self.thread_ids().await? {
            let Some(info) = self.thread_info(&thread).await? else { continue };
            stats.threads += 1;
            stats.checkpoints += info.checkpoints;
            stats.values += info.values;
            stats.tasks += info.tasks;
            stats.bytes += info.bytes;
            if info.bytes > stats.largest_bytes {
                (stats.largest_bytes, stats.largest_thread) = (info.bytes, Some(info.thread));
            }
            stats.oldest_at_ms = Some(stats.oldest_at_ms.map_or(info.at_ms, |at| at.min(info.at_ms)));
            stats.newest_at_ms = Some(stats.newest_at_ms.map_or(info.at_ms, |at| at.max(info.at_ms)));
            match info.ttl_ms {
                Some(_) => stats.threads_with_ttl += 1,
                None => stats.threads_without_ttl += 1,
            }
            stats.threads_with_uneven_ttl += u64::from(!info.is_ttl_even);
        }
        Ok(stats)
    }
}
