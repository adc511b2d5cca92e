//! Remembered results of nodes.

use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::{Payload, Timestamp};

use crate::StoreError;

/// Results that a node with the same input takes instead of being executed.
#[async_trait]
pub trait ResultCache: Send + Sync + 'static {
    /// A remembered result that has not expired at `now`.
    async fn cached(&self, scope: &str, key: &str, now: Timestamp) -> Result<Option<Payload>, StoreError>;

    /// Remembers a result. Not awaited by the run that made it: a cache may forget.
    async fn cache(
        &self,
        scope: &str,
        key: &str,
        value: Payload,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError>;
}
