//! Content-addressed storage of large payloads.

use async_trait::async_trait;
use bytes::Bytes;
use switchyard_core::CasRef;

use crate::StoreError;

#[async_trait]
pub trait Cas: Send + Sync + 'static {
    /// Keeps `content`, durably at return. Keeping the same content twice is one copy.
    async fn put(&self, content: Bytes) -> Result<CasRef, StoreError>;

    /// The content, checked against its hash.
    async fn get(&self, reference: CasRef) -> Result<Bytes, StoreError>;
}
