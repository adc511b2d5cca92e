//! The rows of API keys: written in the writer's transactions, or beside the process that works in the folder.

use std::path::Path;

use rusqlite::{Connection, Row, params};
use switchyard_core::Timestamp;
use switchyard_store::{ApiKeyRecord, StoreError};

use super::error::{cannot_open, sentence};
use super::journal::Failure;
use super::read::{Answer, list, one};
use super::rows::{maybe_moment, moment, parsed};
use super::{Access, Options, connect};

const COLUMNS: &str = "id, name, digest, created_at, revoked_at";

/// A change to the keys. Each is one statement, so that it also stands on its own.
#[derive(Debug)]
pub(super) enum Change {
    Put(Box<ApiKeyRecord>),
    Revoke { id: String, at: Timestamp },
}

/// Whether anything was changed.
pub(super) fn change(conn: &Connection, change: &Change) -> Result<bool, Failure> {
    let changed = match change {
        Change::Put(record) => conn
            .prepare_cached(
                "INSERT INTO api_keys (id, name, digest, created_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (id) DO NOTHING",
            )?
            .execute(params![
                record.id,
                record.name,
                record.digest.to_string(),
                record.created_at.as_millis(),
                record.revoked_at.map(Timestamp::as_millis),
            ])?,
        Change::Revoke { id, at } => conn
            .prepare_cached("UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL")?
            .execute(params![id, at.as_millis()])?,
    };
    Ok(changed > 0)
}

pub(super) fn all(conn: &Connection) -> Answer<Vec<ApiKeyRecord>> {
    list(conn, &format!("SELECT {COLUMNS} FROM api_keys ORDER BY no"), [], record)
}

pub(super) fn by_id(conn: &Connection, id: &str) -> Answer<Option<ApiKeyRecord>> {
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

/// Changes the keys of a file that another process writes to. One short transaction of our own: SQLite lets them
/// take turns, and nothing that the other process remembers is about keys.
pub(super) fn change_beside(path: &Path, wanted: &Change) -> Result<bool, StoreError> {
    let conn = connect(path, Access::Write(&Options::default())).map_err(|e| cannot_open(path, &e))?;
    change(&conn, wanted).map_err(|failure| match failure {
        Failure::Refused(error) => error,
        Failure::Sqlite(error) | Failure::Commit(error) => {
            StoreError::unavailable(format!("cannot write to {}: {}", path.display(), sentence(&error, path)))
        }
    })
}
