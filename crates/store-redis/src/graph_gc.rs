//! Removes graphs that no run uses from Redis. A process that needs one again publishes it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use switchyard_core::RunId;
use switchyard_store::{HotStore, StoreError};
use tokio_util::sync::CancellationToken;

use crate::scripts;
use crate::store::RedisStore;

/// The interval between passes; one process makes them for all.
const EVERY: Duration = Duration::from_secs(15 * 60);
/// How long a graph stays after a run was last put on it.
const UNUSED: Duration = Duration::from_secs(3600);
const AT_ONCE: usize = 1_000;

impl RedisStore {
    /// The duty: removes unused graphs until it is stopped.
    pub async fn tidy_forever(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            match self.tidy_in_turn().await {
                Ok(0) => {}
                Ok(graphs) => tracing::debug!(graphs, "graphs that no run is on have left Redis"),
                Err(error) => tracing::warn!(%error, "unused graphs could not be removed from Redis"),
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn tidy_in_turn(&self) -> Result<usize, StoreError> {
        if self.takes_turn("tidy", EVERY / 2).await? { self.tidy(UNUSED).await } else { Ok(0) }
    }

    /// One pass: removes graphs that no run is on, and that no run was put on for `unused`. Returns how many.
    ///
    /// This pass does not see a run that is put on such a graph meanwhile, but the script checks again when the graph
    /// was last used.
    pub async fn tidy(&self, unused: Duration) -> Result<usize, StoreError> {
        let before = self.now().await?.minus(unused).as_millis();
        let mut find = redis::cmd("ZRANGEBYSCORE");
        find.arg(self.keys.graphs()).arg("-inf").arg(before);
        let candidates: Vec<String> = self.client.query(&find).await?;
        if candidates.is_empty() {
            return Ok(0);
        }
        let used = self.graphs_in_use().await?;
        let mut removed = 0;
        let idle: Vec<&String> = candidates.iter().filter(|hash| !used.contains(*hash)).collect();
        for idle in idle.chunks(AT_ONCE) {
            let keys: Vec<String> = std::iter::once(self.keys.graphs())
                .chain(idle.iter().map(|hash| self.keys.ir_of(hash)))
                .collect();
            let args: Vec<String> =
                std::iter::once(before.to_string()).chain(idle.iter().map(|hash| (*hash).clone())).collect();
            removed += self.client.run::<usize>(&scripts::DROP_GRAPHS, &keys, &args).await?;
        }
        Ok(removed)
    }

    async fn graphs_in_use(&self) -> Result<HashSet<String>, StoreError> {
        let mut used = HashSet::new();
        let mut cursor = None;
        while cursor != Some(0) {
            let (next, runs) = self.scan_runs(cursor.unwrap_or(0), AT_ONCE).await?;
            used.extend(self.graphs_of(&runs).await?);
            cursor = Some(next);
        }
        Ok(used)
    }

    async fn graphs_of(&self, runs: &[RunId]) -> Result<Vec<String>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let mut ask = redis::pipe();
        for run in runs {
            ask.hmget(self.keys.run(*run), &["definition", "plans"]);
        }
        let found: Vec<(Option<String>, Option<String>)> = self.client.query_all(&ask).await?;
        let words = found.into_iter().flat_map(|(on, plans)| [on, plans]).flatten();
        Ok(words.flat_map(|words| words.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect())
    }
}
