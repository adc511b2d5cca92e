//! Registered workflows: names for definitions, in versions.

use async_trait::async_trait;
use switchyard_core::{Hash, Timestamp};
use switchyard_store::{Registry, StoreError, WorkflowRecord};
use tokio_postgres::{Row, Transaction};

use super::PostgresArchive;
use super::operations::Failure;
use super::rows::{moment, parsed};
use crate::text;

const COLUMNS: &str = "name, version, definition, created_at";

const NEWEST: &str = "SELECT name, version, definition, created_at FROM workflows WHERE name = $1
    ORDER BY version DESC LIMIT 1";

#[async_trait]
impl Registry for PostgresArchive {
    async fn workflow(&self, name: &str, version: Option<u32>) -> Result<Option<WorkflowRecord>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM workflows WHERE name = $1 AND version = coalesce($2, version)
             ORDER BY version DESC LIMIT 1"
        );
        let row = self.pool.row(&sql, &[&text::stored(name), &version.map(u32::cast_signed)]).await?;
        row.as_ref().map(record).transpose()
    }

    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, StoreError> {
        let sql = format!("SELECT DISTINCT ON (name) {COLUMNS} FROM workflows ORDER BY name, version DESC");
        self.pool.rows(&sql, &[]).await?.iter().map(record).collect()
    }
}

/// Registers a new version, unless the newest one already has the same definition.
pub(super) async fn register(
    transaction: &Transaction<'_>,
    name: &str,
    definition: Hash,
    at: Timestamp,
) -> Result<WorkflowRecord, Failure> {
    let stored = text::stored(name);
    // Other registrations under this name wait here, so that versions have no gaps.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' workflow ' || $1, 0))";
    transaction.execute(lock, &[&stored]).await?;
    let newest = transaction.query_opt(NEWEST, &[&stored]).await?;
    let newest = newest.as_ref().map(record).transpose()?;
    let version = match newest {
        Some(newest) if newest.definition == definition => return Ok(newest),
        newest => newest.map_or(0, |newest| newest.version) + 1,
    };
    let insert = "INSERT INTO workflows (name, version, definition, created_at) VALUES ($1, $2, $3, $4)";
    let params = (version.cast_signed(), definition.to_string(), at.as_millis());
    transaction.execute(insert, &[&stored, &params.0, &params.1, &params.2]).await?;
    Ok(WorkflowRecord { name: name.to_owned(), version, definition, created_at: at })
}

fn record(row: &Row) -> Result<WorkflowRecord, StoreError> {
    Ok(WorkflowRecord {
        name: text::read(row.get("name")),
        version: row.get::<_, i32>("version").cast_unsigned(),
        definition: parsed(row, "definition")?,
        created_at: moment(row, "created_at"),
    })
}
