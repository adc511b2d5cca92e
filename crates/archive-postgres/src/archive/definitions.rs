//! Definitions by their hash.

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_core::Hash;
use switchyard_store::{Definitions, StoreError};

use super::PostgresArchive;

#[async_trait]
impl Definitions for PostgresArchive {
    async fn put_definition(&self, hash: Hash, canonical: Arc<str>) -> Result<(), StoreError> {
        // The same workflow is submitted again and again: a lookup costs less than a commit.
        let look = "SELECT 1 FROM definitions WHERE hash = $1";
        if self.pool.row(look, &[&hash.to_string()]).await?.is_some() {
            return Ok(());
        }
        let put = "INSERT INTO definitions (hash, body) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        self.pool.change(put, &[&hash.to_string(), &&*canonical]).await.map(drop)
    }

    async fn definition(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        let row = self.pool.row("SELECT body FROM definitions WHERE hash = $1", &[&hash.to_string()]).await?;
        Ok(row.map(|row| row.get::<_, &str>("body").into()))
    }
}
