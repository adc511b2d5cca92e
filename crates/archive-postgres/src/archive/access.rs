//! API keys.

use async_trait::async_trait;
use switchyard_core::Timestamp;
use switchyard_store::{Access, ApiKeyRecord, StoreError};
use tokio_postgres::{Error, Row, Transaction};

use super::PostgresArchive;
use super::rows::{maybe_moment, millis, moment, parsed};
use crate::pool::Param;
use crate::text;

const COLUMNS: &str = "id, name, digest, created_at, revoked_at";

#[async_trait]
impl Access for PostgresArchive {
    async fn any_api_key(&self) -> Result<bool, StoreError> {
        let row = self.pool.row("SELECT EXISTS (SELECT 1 FROM api_keys)", &[]).await?;
        Ok(row.is_some_and(|row| row.get(0)))
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM api_keys ORDER BY no");
        self.pool.rows(&sql, &[]).await?.iter().map(record).collect()
    }

    async fn api_key(&self, id: &str) -> Result<Option<ApiKeyRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE id = $1");
        self.pool.row(&sql, &[&text::stored(id)]).await?.as_ref().map(record).transpose()
    }
}

/// Adds a key. An existing key with this id is not changed.
pub(super) async fn put(transaction: &Transaction<'_>, record: &ApiKeyRecord) -> Result<(), Error> {
    let sql = "INSERT INTO api_keys (id, name, digest, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (id) DO NOTHING";
    let (id, name) = (text::stored(&record.id), text::stored(&record.name));
    let (digest, created_at) = (record.digest.to_string(), record.created_at.as_millis());
    let params: [Param<'_>; 5] = [&id, &name, &digest, &created_at, &millis(record.revoked_at)];
    transaction.execute(sql, &params).await.map(drop)
}

/// Revokes a key. Returns whether it was valid before.
pub(super) async fn revoke(transaction: &Transaction<'_>, id: &str, at: Timestamp) -> Result<bool, Error> {
    let sql = "UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    Ok(transaction.execute(sql, &[&text::stored(id), &at.as_millis()]).await? > 0)
}

fn record(row: &Row) -> Result<ApiKeyRecord, StoreError> {
    Ok(ApiKeyRecord {
        id: text::read(row.get("id")),
        name: text::read(row.get("name")),
        digest: parsed(row, "digest")?,
        created_at: moment(row, "created_at"),
        revoked_at: maybe_moment(row, "revoked_at"),
    })
}
