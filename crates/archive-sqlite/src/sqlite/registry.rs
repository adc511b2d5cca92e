//! Registered workflows: names for definitions, in versions.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::{Hash, Timestamp};
use switchyard_store::{Registry, StoreError, WorkflowRecord};

use super::readers::{Answer, list, one};
use super::rows::{moment, parsed};
use super::work::Failure;
use super::{SqliteArchive, Writing};

const COLUMNS: &str = "name, version, definition, created_at";

#[async_trait]
impl Registry for SqliteArchive {
    async fn workflow(&self, name: &str, version: Option<u32>) -> Result<Option<WorkflowRecord>, StoreError> {
        let alone = matches!(self.writing, Writing::Everything(_)) && version.is_none();
        if alone && let Some(known) = self.newest.of(name) {
            return Ok(Some(known));
        }
        let name = name.to_owned();
        let found = self.readers.ask(move |conn| by_name(conn, &name, version)).await?;
        if alone && let Some(record) = &found {
            self.newest.learn(record);
        }
        Ok(found)
    }

    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, StoreError> {
        self.readers.ask(newest_of_each).await
    }
}

/// Registers a new version, unless the newest one already has the same definition.
pub(super) fn register(
    conn: &Connection,
    name: &str,
    definition: Hash,
    at: Timestamp,
) -> Result<WorkflowRecord, Failure> {
    let version = match by_name(conn, name, None)? {
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

fn by_name(conn: &Connection, name: &str, version: Option<u32>) -> Answer<Option<WorkflowRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM workflows WHERE name = ?1 AND version = coalesce(?2, version)
         ORDER BY version DESC LIMIT 1"
    );
    one(conn, &sql, params![name, version], record)
}

fn newest_of_each(conn: &Connection) -> Answer<Vec<WorkflowRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM workflows AS newest
         WHERE version = (SELECT max(version) FROM workflows WHERE name = newest.name) ORDER BY name"
    );
    list(conn, &sql, [], record)
}

fn record(row: &Row<'_>) -> Answer<WorkflowRecord> {
    Ok(WorkflowRecord {
        name: row.get("name")?,
        version: row.get("version")?,
        definition: parsed(row, "definition")?,
        created_at: moment(row, "created_at")?,
    })
}
