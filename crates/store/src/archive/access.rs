//! API keys.

use async_trait::async_trait;
use switchyard_core::{Hash, Timestamp};

use crate::{Mutation, Operations, StoreError};

/// API keys.
#[async_trait]
pub trait Access: Operations {
    /// [`Mutation::PutApiKey`] without an operation.
    async fn put_api_key(&self, record: ApiKeyRecord) -> Result<(), StoreError> {
        self.mutate(Mutation::PutApiKey(Box::new(record)), None).await.map(drop)
    }

    /// [`Mutation::RevokeApiKey`] without an operation. Returns whether the key existed and was not revoked yet.
    async fn revoke_api_key(&self, id: &str, at: Timestamp) -> Result<bool, StoreError> {
        self.mutate(Mutation::RevokeApiKey { id: id.to_owned(), at }, None).await?.changed()
    }

    /// Whether any key was ever created. Every request calls this while there is none, so it must be cheap.
    async fn any_api_key(&self) -> Result<bool, StoreError>;

    /// Every key that was ever created, oldest first.
    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    async fn api_key(&self, id: &str) -> Result<Option<ApiKeyRecord>, StoreError>;
}

/// An API key as the archive stores it, without its secret. `ApiKeyView` in `crates/api` is the public view.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKeyRecord {
    /// The id is also part of the key, so that the record is found without trying every key.
    pub id: String,
    /// The owner or the purpose of the key, for people.
    pub name: String,
    /// SHA-256 of the key's secret.
    pub digest: Hash,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}
