//! API keys. The writer changes them in its transactions, or a second process does in one of its own.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, Row, TransactionBehavior, params};
use switchyard_core::Timestamp;
use switchyard_store::{Access, ApiKeyRecord, Mutation, MutationOutcome, OperationRequest, StoreError};

use super::error::{cannot_open, sentence};
use super::readers::{Answer, list, one};
use super::rows::{maybe_moment, moment, parsed};
use super::work::Failure;
use super::{OpenMode, Options, SqliteArchive, connect, operations};

const COLUMNS: &str = "id, name, digest, created_at, revoked_at";

#[async_trait]
impl Access for SqliteArchive {
    async fn any_api_key(&self) -> Result<bool, StoreError> {
        self.readers.ask(any).await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.readers.ask(all).await
    }

    async fn api_key(&self, id: &str) -> Result<Option<ApiKeyRecord>, StoreError> {
        let id = id.to_owned();
        self.readers.ask(move |conn| by_id(conn, &id)).await
    }
}

/// Adds a key. An existing key with this id is not changed.
pub(super) fn put(conn: &Connection, record: &ApiKeyRecord) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO api_keys (id, name, digest, created_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO NOTHING",
    )?
    .execute(params![
        record.id,
        record.name,
        record.digest.to_string(),
        record.created_at.as_millis(),
        record.revoked_at.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

/// Revokes a key. Returns whether it was valid before.
pub(super) fn revoke(conn: &Connection, id: &str, at: Timestamp) -> Result<bool, Failure> {
    let revoke = "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
    Ok(conn.prepare_cached(revoke)?.execute(params![id, at.as_millis()])? > 0)
}

fn any(conn: &Connection) -> Answer<bool> {
    Ok(conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM api_keys)")?.query_row([], |row| row.get(0))?)
}

fn all(conn: &Connection) -> Answer<Vec<ApiKeyRecord>> {
    list(conn, &format!("SELECT {COLUMNS} FROM api_keys ORDER BY no"), [], record)
}

fn by_id(conn: &Connection, id: &str) -> Answer<Option<ApiKeyRecord>> {
    one(conn, &format!("SELECT {COLUMNS} FROM api_keys WHERE id = ?1"), [id], record)
}

fn record(row: &Row<'_>) -> Answer<ApiKeyRecord> {
    Ok(ApiKeyRecord {
        id: row.get("id")?,
        name: row.get("name")?,
        digest: parsed(row, "digest")?,
        created_at: moment(row, "created_at")?,
        revoked_at: maybe_moment(row, "revoked_at")?,
    })
}

/// Changes the keys of a file that another process writes to, in one short transaction. SQLite serializes it with the
/// other process's transactions, and that process caches nothing about keys.
pub(super) fn mutate_beside(
    path: &Path,
    mutation: &Mutation,
    operation: Option<&OperationRequest>,
) -> Result<MutationOutcome, StoreError> {
    let mut conn = connect(path, OpenMode::Write(&Options::default())).map_err(|e| cannot_open(path, &e))?;
    let unable = |failure| match failure {
        Failure::Refused(error) => error,
        Failure::Sqlite(error) | Failure::Commit(error) => {
            StoreError::unavailable(format!("cannot write to {}: {}", path.display(), sentence(&error, path)))
        }
    };
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(|error| unable(error.into()))?;
    let outcome = operations::mutate(&transaction, mutation, operation).map_err(unable)?;
    transaction.commit().map_err(|error| {
        let (path, why) = (path.display(), sentence(&error, path));
        StoreError::outcome_unknown(format!("cannot finish writing to {path}: {why}"))
    })?;
    Ok(outcome?)
}
