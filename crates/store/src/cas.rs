//! Content-addressed storage of large payloads.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use switchyard_core::{CasRef, Hash};

use crate::StoreError;

#[async_trait]
pub trait Cas: std::fmt::Debug + Send + Sync + 'static {
    /// Keeps `content`, durably at return. Keeping the same content twice is one copy, as old as the last time.
    async fn put(&self, content: Bytes) -> Result<CasRef, StoreError>;

    /// The content, checked against its hash.
    async fn get(&self, reference: CasRef) -> Result<Bytes, StoreError>;

    /// Payloads that were not put for `min_age`, in the order of their hashes, those behind `after`, at most
    /// `limit`. The age is by this storage's own clock.
    async fn aged(
        &self,
        min_age: Duration,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Vec<Hash>, StoreError>;

    /// Removes a payload, unless it was put within `min_age`. Whether it did.
    async fn remove(&self, hash: Hash, min_age: Duration) -> Result<bool, StoreError>;
}
