//! Content-addressed storage of large payloads.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use switchyard_core::{CasRef, Hash};

use crate::StoreError;

#[async_trait]
pub trait Cas: std::fmt::Debug + Send + Sync + 'static {
    /// Stores `content`, durably at return. Storing the same content twice keeps one copy, whose age counts from the
    /// last put.
    async fn put(&self, content: Bytes) -> Result<CasRef, StoreError>;

    /// The content, checked against its hash.
    async fn get(&self, reference: CasRef) -> Result<Bytes, StoreError>;

    /// Payloads that were not put within `min_age`, ordered by hash, starting behind `after`, at most `limit`. This
    /// storage's own clock measures the age.
    async fn aged(
        &self,
        min_age: Duration,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Vec<Hash>, StoreError>;

    /// Removes a payload, unless it was put within `min_age`. Returns whether it was removed.
    async fn remove(&self, hash: Hash, min_age: Duration) -> Result<bool, StoreError>;
}
