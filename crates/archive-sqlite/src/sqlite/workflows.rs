//! Names for definitions, in versions.

use rusqlite::{Connection, params};
use switchyard_core::{Hash, Timestamp};
use switchyard_store::WorkflowRecord;

use super::journal::Failure;
use super::read;

/// A new version, unless the newest one is the same definition already.
pub(super) fn register(
    conn: &Connection,
    name: &str,
    definition: Hash,
    at: Timestamp,
) -> Result<WorkflowRecord, Failure> {
    let version = match read::workflow(conn, name, None)? {
        Some(newest) if newest.definition == definition => return Ok(newest),
        Some(newest) => newest.version + 1,
        None => 1,
    };
    conn.prepare_cached(
        "INSERT INTO workflows (name, version, definition, created_at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![name, version, definition.to_string(), at.as_millis()])?;
    Ok(WorkflowRecord { name: name.to_owned(), version, definition, created_at: at })
}
