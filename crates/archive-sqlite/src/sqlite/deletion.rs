//! Deletes runs immediately, and records who deleted them.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::{RunId, Timestamp};
use switchyard_store::{DeleteRequest, Deletion, StoreError, Tombstone, Tombstones};

use super::SqliteArchive;
use super::readers::{Answer, at_most, list, one};
use super::retention::remove_doomed;
use super::rows::{moment, parsed};
use super::work::Failure;

const COLUMNS: &str = "run, workflow, status, deleted_at, deleted_by, reason, children";

#[async_trait]
impl Tombstones for SqliteArchive {
    async fn tombstone(&self, run: RunId) -> Result<Option<Tombstone>, StoreError> {
        self.readers.ask(move |conn| by_run(conn, run)).await
    }

    async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, StoreError> {
        self.readers.ask(move |conn| latest(conn, limit)).await
    }
}

/// The run and its descendants.
const DOOMED: &str = "CREATE TEMP TABLE doomed AS WITH RECURSIVE
    doomed (id) AS (VALUES (?1) UNION SELECT runs.id FROM runs JOIN doomed ON runs.parent = doomed.id)
    SELECT runs.id, runs.no, runs.parent, runs.ended_at FROM runs JOIN doomed USING (id)";

/// Deletes a run and its descendants. The caller has opened a transaction.
pub(super) fn delete(conn: &Connection, request: &DeleteRequest) -> Result<Deletion, Failure> {
    let id = request.run.to_string();
    let Some(facts) = facts(conn, &id)? else {
        return Ok(by_run(conn, request.run)?.map_or(Deletion::Unknown, Deletion::Before));
    };
    if let Some(parent) = facts.parent {
        return Ok(Deletion::ChildOf(parent));
    }
    conn.execute("DROP TABLE IF EXISTS temp.doomed", [])?;
    conn.execute(DOOMED, [&id])?;
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let under_way = count("SELECT count(*) FROM doomed WHERE ended_at IS NULL")?;
    if under_way > 0 {
        conn.execute("DROP TABLE temp.doomed", [])?;
        return Ok(Deletion::UnderWay);
    }
    let children = count("SELECT count(*) - 1 FROM doomed")?;
    remove_doomed(conn, request.at)?;
    let tombstone = Tombstone {
        run_id: request.run,
        workflow: facts.workflow,
        status: facts.status,
        deleted_at: request.at,
        deleted_by: request.by.clone(),
        reason: request.reason.clone(),
        children: u64::try_from(children).unwrap_or(0),
    };
    keep(conn, &tombstone)?;
    Ok(Deletion::Deleted(tombstone))
}

struct Facts {
    workflow: std::sync::Arc<str>,
    status: switchyard_core::run::RunStatus,
    parent: Option<RunId>,
}

fn facts(conn: &Connection, id: &str) -> Answer<Option<Facts>> {
    one(conn, "SELECT id, workflow, status, parent FROM runs WHERE id = ?1", [id], |row| {
        Ok(Facts {
            workflow: row.get("workflow")?,
            status: parsed(row, "status")?,
            parent: super::rows::maybe(row, "parent", |text: String| text.parse().ok())?,
        })
    })
}

fn keep(conn: &Connection, tombstone: &Tombstone) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO tombstones (run, workflow, status, deleted_at, deleted_by, reason, children)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        tombstone.run_id.to_string(),
        tombstone.workflow,
        tombstone.status.as_str(),
        Timestamp::as_millis(tombstone.deleted_at),
        tombstone.deleted_by,
        tombstone.reason,
        tombstone.children.cast_signed(),
    ])?;
    Ok(())
}

fn by_run(conn: &Connection, run: RunId) -> Answer<Option<Tombstone>> {
    let sql = format!("SELECT {COLUMNS} FROM tombstones WHERE run = ?1");
    one(conn, &sql, [run.to_string()], record)
}

fn latest(conn: &Connection, limit: usize) -> Answer<Vec<Tombstone>> {
    let sql = format!("SELECT {COLUMNS} FROM tombstones ORDER BY deleted_at DESC, run DESC LIMIT ?1");
    list(conn, &sql, [at_most(limit)], record)
}

fn record(row: &Row<'_>) -> Answer<Tombstone> {
    Ok(Tombstone {
        run_id: parsed(row, "run")?,
        workflow: row.get("workflow")?,
        status: parsed(row, "status")?,
        deleted_at: moment(row, "deleted_at")?,
        deleted_by: row.get("deleted_by")?,
        reason: row.get("reason")?,
        children: row.get::<_, i64>("children")?.cast_unsigned(),
    })
}
