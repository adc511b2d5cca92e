//! The rows of API keys.

use switchyard_core::Timestamp;
use switchyard_store::{ApiKeyRecord, StoreError};
use tokio_postgres::Row;

use super::rows::{maybe_moment, millis, moment, parsed};
use crate::pool::Pool;
use crate::text;

const COLUMNS: &str = "id, name, digest, created_at, revoked_at";

pub(super) async fn put(pool: &Pool, record: &ApiKeyRecord) -> Result<(), StoreError> {
    let sql = "INSERT INTO api_keys (id, name, digest, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (id) DO NOTHING";
    let (id, name) = (text::stored(&record.id), text::stored(&record.name));
    let (digest, created_at) = (record.digest.to_string(), record.created_at.as_millis());
    pool.change(sql, &[&id, &name, &digest, &created_at, &millis(record.revoked_at)]).await.map(drop)
}

pub(super) async fn all(pool: &Pool) -> Result<Vec<ApiKeyRecord>, StoreError> {
    pool.rows(&format!("SELECT {COLUMNS} FROM api_keys ORDER BY no"), &[]).await?.iter().map(record).collect()
}

pub(super) async fn by_id(pool: &Pool, id: &str) -> Result<Option<ApiKeyRecord>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE id = $1");
    pool.row(&sql, &[&text::stored(id)]).await?.as_ref().map(record).transpose()
}

pub(super) async fn revoke(pool: &Pool, id: &str, at: Timestamp) -> Result<bool, StoreError> {
    let sql = "UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    Ok(pool.change(sql, &[&text::stored(id), &at.as_millis()]).await? > 0)
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
