//! Definitions by their hash.

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_core::Hash;

use crate::StoreError;

/// The canonical text of every definition that a run or a workflow names.
#[async_trait]
pub trait Definitions: Send + Sync + 'static {
    /// Keeps a definition's canonical text under its hash; durable at return.
    async fn put_definition(&self, hash: Hash, canonical: Arc<str>) -> Result<(), StoreError>;

    async fn definition(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError>;
}
