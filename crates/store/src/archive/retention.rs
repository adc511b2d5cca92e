//! How long ended runs are kept.

use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::Timestamp;

use crate::StoreError;

/// Removes runs that ended long ago.
#[async_trait]
pub trait Retention: Send + Sync + 'static {
    /// One pass of the retention duty: removes at most `limit` ended runs that `policy` no longer keeps, the earliest
    /// ends first. Each is removed atomically with its events, its approvals and its descendants. A run with a
    /// descendant that has not ended is kept. Returns how many were removed, not counting descendants; fewer than
    /// `limit` means that there are no more.
    async fn retain(
        &self,
        policy: &RetentionPolicy,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError>;
}

/// Which ended runs are kept. An empty policy removes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// How long a run is kept after its end.
    pub keep_for: Option<Duration>,
    /// How many runs are kept, the latest ends first. Runs that another run started are not counted: they are removed
    /// with it.
    pub keep_runs: Option<u64>,
    /// How long a payload stays in the CAS after it was put and after its last mention. Payloads that are being
    /// submitted, forked or read from the cache, and those of events not archived yet, are not mentioned yet: this
    /// must be longer than any of these takes.
    pub payload_grace: Duration,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { keep_for: None, keep_runs: None, payload_grace: Duration::from_secs(24 * 3600) }
    }
}
