//! How long ended runs are kept.

use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::Timestamp;

use crate::StoreError;

/// Removes runs that ended long ago.
#[async_trait]
pub trait Retention: Send + Sync + 'static {
    /// One pass of the retention duty: removes ended runs that `policy` no longer keeps, the earliest ends first, at
    /// most `limit` of them, each with its events, its approvals and the runs that it started, all of it or nothing.
    /// A run of which anything is still under way is kept. How many were removed, without those they had started;
    /// fewer than `limit` means that there are no more.
    async fn retain(
        &self,
        policy: &RetentionPolicy,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError>;
}

/// What is kept of runs that have ended. Nothing is removed by an empty policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// How long after their end.
    pub keep_for: Option<Duration>,
    /// How many, the latest ends first. Runs that another run started are not counted: they go with it.
    pub keep_runs: Option<u64>,
    /// How long a payload stays in the CAS after it was put and after nothing mentions it any more. What is being
    /// submitted, forked or taken from the cache is not mentioned yet, nor are events that are still on their way
    /// here: this must be longer than any of that takes.
    pub payload_grace: Duration,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { keep_for: None, keep_runs: None, payload_grace: Duration::from_secs(24 * 3600) }
    }
}
