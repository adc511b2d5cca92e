//! Who may use the API.

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

    /// [`Mutation::RevokeApiKey`] without an operation. Whether there was such a key, and it was not revoked before.
    async fn revoke_api_key(&self, id: &str, at: Timestamp) -> Result<bool, StoreError> {
        self.mutate(Mutation::RevokeApiKey { id: id.to_owned(), at }, None).await?.changed()
    }

    /// Whether a key was ever made. Every request asks while there is none, so this must be cheap.
    async fn any_api_key(&self) -> Result<bool, StoreError>;

    /// Every key that was ever made, oldest first.
    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    async fn api_key(&self, id: &str) -> Result<Option<ApiKeyRecord>, StoreError>;
}

/// A key that lets its holder in. The key itself is nowhere. What is shown of it is `ApiKeyView` in `crates/api`.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKeyRecord {
    /// In the key itself as well, so that it is found without trying all of them.
    pub id: String,
    /// Whose it is or what for; for people.
    pub name: String,
    /// SHA-256 of its secret.
    pub digest: Hash,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}
