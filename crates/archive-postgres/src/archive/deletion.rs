//! Deletes runs immediately, and records who deleted them.

use async_trait::async_trait;
use switchyard_core::RunId;
use switchyard_store::{DeleteRequest, Deletion, StoreError, Tombstone, Tombstones};
use tokio_postgres::{Row, Transaction};

use super::PostgresArchive;
use super::operations::Failure;
use super::retention::REMOVE_DOOMED;
use super::rows::{at_most, damaged, moment, parsed, shared};
use crate::pool::Param;
use crate::text;

const COLUMNS: &str = "run, workflow, status, deleted_at, deleted_by, reason, children";

#[async_trait]
impl Tombstones for PostgresArchive {
    async fn tombstone(&self, run: RunId) -> Result<Option<Tombstone>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM tombstones WHERE run = $1");
        self.pool.row(&sql, &[&run.to_string()]).await?.as_ref().map(record).transpose()
    }

    async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM tombstones ORDER BY deleted_at DESC, run DESC LIMIT $1");
        self.pool.rows(&sql, &[&at_most(limit)]).await?.iter().map(record).collect()
    }
}

/// Locks the run and its descendants: a concurrent append waits for the lock, and is then refused.
const LOCK: &str = "WITH RECURSIVE doomed (id) AS (
        SELECT $1::text COLLATE \"C\" UNION SELECT runs.id FROM runs JOIN doomed ON runs.parent = doomed.id)
    SELECT id, workflow, status, parent, ended_at FROM runs WHERE id IN (SELECT id FROM doomed) ORDER BY id FOR UPDATE";

/// Deletes a run and its descendants in the caller's transaction.
pub(super) async fn delete(
    transaction: &Transaction<'_>,
    request: &DeleteRequest,
) -> Result<Deletion, Failure> {
    let id = request.run.to_string();
    let doomed = transaction.query(LOCK, &[&id]).await?;
    let Some(row) = doomed.iter().find(|row| row.get::<_, &str>("id") == id) else {
        let sql = format!("SELECT {COLUMNS} FROM tombstones WHERE run = $1");
        let before = transaction.query_opt(&sql, &[&id]).await?;
        let before = before.as_ref().map(record).transpose()?;
        return Ok(before.map_or(Deletion::Unknown, Deletion::Before));
    };
    if let Some(parent) = row.get::<_, Option<&str>>("parent") {
        let parent = parent.parse().map_err(|_| damaged("parent", &id))?;
        return Ok(Deletion::ChildOf(parent));
    }
    if doomed.iter().any(|row| row.get::<_, Option<i64>>("ended_at").is_none()) {
        return Ok(Deletion::UnderWay);
    }
    let tombstone = Tombstone {
        run_id: request.run,
        workflow: shared(row, "workflow"),
        status: parsed(row, "status")?,
        deleted_at: request.at,
        deleted_by: request.by.clone(),
        reason: request.reason.clone(),
        children: doomed.len() as u64 - 1,
    };
    let ids: Vec<&str> = doomed.iter().map(|row| row.get("id")).collect();
    let remove = format!(
        "WITH doomed (id) AS (SELECT unnest($1::text[])), {REMOVE_DOOMED} SELECT count(*) FROM removed"
    );
    transaction.query(&remove, &[&ids, &request.at.as_millis()]).await?;
    keep(transaction, &tombstone).await?;
    Ok(Deletion::Deleted(tombstone))
}

async fn keep(transaction: &Transaction<'_>, tombstone: &Tombstone) -> Result<(), Failure> {
    let sql = "INSERT INTO tombstones (run, workflow, status, deleted_at, deleted_by, reason, children)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let (run, status) = (tombstone.run_id.to_string(), tombstone.status.as_str());
    let (workflow, by) = (text::stored(&tombstone.workflow), text::stored(&tombstone.deleted_by));
    let (reason, children) = (text::stored(&tombstone.reason), tombstone.children.cast_signed());
    let at = tombstone.deleted_at.as_millis();
    let params: [Param<'_>; 7] = [&run, &workflow, &status, &at, &by, &reason, &children];
    transaction.execute(sql, &params).await?;
    Ok(())
}

fn record(row: &Row) -> Result<Tombstone, StoreError> {
    Ok(Tombstone {
        run_id: parsed(row, "run")?,
        workflow: shared(row, "workflow"),
        status: parsed(row, "status")?,
        deleted_at: moment(row, "deleted_at"),
        deleted_by: shared(row, "deleted_by"),
        reason: shared(row, "reason"),
        children: row.get::<_, i64>("children").cast_unsigned(),
    })
}
