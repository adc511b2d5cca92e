//! Cached results of nodes.

use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::{Payload, Timestamp};

use crate::StoreError;

/// Cached results, which a node with the same input uses instead of executing.
#[async_trait]
pub trait ResultCache: Send + Sync + 'static {
    /// A cached result that has not expired at `now`.
    async fn cached(&self, scope: &str, key: &str, now: Timestamp) -> Result<Option<Payload>, StoreError>;

    /// Caches a result. The run that produced it does not await this call, so a cached result may be lost.
    async fn cache(
        &self,
        scope: &str,
        key: &str,
        value: Payload,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError>;
}
