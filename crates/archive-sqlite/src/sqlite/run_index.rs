//! Runs, projected from their events, and the commands that took effect on them.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::error::RunError;
use switchyard_core::run::{Accepted, Operation, RunStatus};
use switchyard_core::{Hash, Labels, OperationId, RunId, Timestamp};
use switchyard_store::{
    AppliedOperation, Page, RunCount, RunFilter, RunIndex, RunRecord, StoreError, Unfinished,
};

use super::SqliteArchive;
use super::readers::{Answer, list, one};
use super::rows::{json, maybe, maybe_moment, moment, parsed};
use super::run_search;
use super::work::Failure;

pub(super) const COLUMNS: &str = "id, workflow, workflow_version, definition, status, accepted_at, ended_at,
     parent, parent_node, schedule, error,
     (SELECT json_group_object(key, value) FROM run_labels WHERE run = runs.id) AS labels,
     (SELECT coalesce(max(seq), 0) FROM events WHERE run_no = runs.no) AS last_seq";

#[async_trait]
impl RunIndex for SqliteArchive {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.readers.ask(move |conn| by_id(conn, run)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError> {
        let filter = filter.clone();
        self.readers.ask(move |conn| run_search::page(conn, &filter)).await
    }

    async fn count_runs(&self, filter: &RunFilter, max: Option<u64>) -> Result<RunCount, StoreError> {
        let filter = filter.clone();
        self.readers.ask(move |conn| run_search::count(conn, &filter, max)).await
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        self.readers.ask(unfinished).await
    }

    async fn unfinished_with_ended_children(&self) -> Result<Vec<RunId>, StoreError> {
        self.readers.ask(unfinished_with_ended_children).await
    }

    async fn by_idempotency_key(&self, key: &str) -> Result<Option<(RunId, Hash)>, StoreError> {
        let key = key.to_owned();
        self.readers.ask(move |conn| by_idempotency_key(conn, &key)).await
    }

    async fn run_operation(
        &self,
        run: RunId,
        id: &OperationId,
    ) -> Result<Option<AppliedOperation>, StoreError> {
        let id = id.clone();
        self.readers.ask(move |conn| operation(conn, run, &id)).await
    }
}

fn by_id(conn: &Connection, run: RunId) -> Answer<Option<RunRecord>> {
    one(conn, &format!("SELECT {COLUMNS} FROM runs WHERE id = ?1"), [run.to_string()], record)
}

fn unfinished(conn: &Connection) -> Answer<Vec<Unfinished>> {
    let sql = "SELECT id, (SELECT max(seq) FROM events WHERE run_no = runs.no) AS last_seq FROM runs
               WHERE status IN ('queued', 'running', 'paused', 'closing', 'compensating') ORDER BY id";
    list(conn, sql, [], |row| {
        let last_seq = row.get::<_, i64>("last_seq")?.cast_unsigned();
        Ok(Unfinished { run: parsed(row, "id")?, last_seq })
    })
}

fn unfinished_with_ended_children(conn: &Connection) -> Answer<Vec<RunId>> {
    let sql = "SELECT id FROM runs WHERE status IN ('queued', 'running', 'paused', 'closing', 'compensating')
                 AND EXISTS (SELECT 1 FROM runs AS child WHERE child.parent = runs.id)
                 AND NOT EXISTS (SELECT 1 FROM runs AS child
                                 WHERE child.parent = runs.id AND child.ended_at IS NULL)
               ORDER BY id";
    list(conn, sql, [], |row| parsed(row, "id"))
}

fn by_idempotency_key(conn: &Connection, key: &str) -> Answer<Option<(RunId, Hash)>> {
    let sql = "SELECT id, idempotency_body FROM runs WHERE idempotency_key = ?1";
    one(conn, sql, [key], |row| Ok((parsed(row, "id")?, parsed(row, "idempotency_body")?)))
}

fn operation(conn: &Connection, run: RunId, id: &OperationId) -> Answer<Option<AppliedOperation>> {
    let sql = "SELECT seq, command FROM run_operations
               WHERE run_no = (SELECT no FROM runs WHERE id = ?1) AND id = ?2";
    let found = list(conn, sql, params![run.to_string(), id.as_str()], |row| {
        Ok(AppliedOperation {
            seq: row.get::<_, i64>("seq")?.cast_unsigned(),
            command: parsed(row, "command")?,
        })
    })?;
    Ok(found.into_iter().next())
}

/// Inserts the row of a run and returns its number.
pub(super) fn insert(
    conn: &Connection,
    run: RunId,
    accepted: &Accepted,
    at: Timestamp,
    status: RunStatus,
) -> Result<i64, Failure> {
    let idempotency = accepted.idempotency.as_ref();
    let parent = accepted.parent.as_ref();
    let mut insert = conn.prepare_cached(
        "INSERT INTO runs (id, workflow, workflow_version, definition, status, queued, accepted_at, parent,
                           idempotency_key, idempotency_body, parent_node, schedule)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let inserted = insert.insert(params![
        run.to_string(),
        accepted.workflow,
        accepted.workflow_version,
        accepted.definition.to_string(),
        status.as_str(),
        accepted.queued,
        at.as_millis(),
        parent.map(|parent| parent.run.to_string()),
        idempotency.map(|i| &i.key),
        idempotency.map(|i| i.body.to_string()),
        parent.map(|parent| &parent.node),
        accepted.schedule,
    ]);
    let no = inserted.map_err(|e| taken_key(e.into(), run, accepted))?;
    insert_labels(conn, run, &accepted.labels)?;
    Ok(no)
}

fn insert_labels(conn: &Connection, run: RunId, labels: &Labels) -> Result<(), Failure> {
    for (key, value) in labels {
        conn.prepare_cached("INSERT INTO run_labels (run, key, value) VALUES (?1, ?2, ?3)")?
            .execute(params![run.to_string(), key, value])?;
    }
    Ok(())
}

/// The error for a duplicate idempotency key. The hot store accepts a key only once, so this is a bug.
fn taken_key(failure: Failure, run: RunId, accepted: &Accepted) -> Failure {
    match (failure, &accepted.idempotency) {
        (Failure::Refused(why), Some(idempotency)) => Failure::contradiction(format!(
            "{run} was accepted with idempotency key `{}`, which another run has ({why})",
            idempotency.key
        )),
        (failure, _) => failure,
    }
}

pub(super) fn set_status(
    conn: &Connection,
    run_no: i64,
    status: RunStatus,
    queued: bool,
) -> Result<(), Failure> {
    conn.prepare_cached("UPDATE runs SET status = ?2, queued = ?3 WHERE no = ?1")?.execute(params![
        run_no,
        status.as_str(),
        queued
    ])?;
    Ok(())
}

/// Sets the end of a run that has ended, or clears it for a run that starts over.
pub(super) fn set_end(
    conn: &Connection,
    run_no: i64,
    status: RunStatus,
    at: Option<Timestamp>,
    error: Option<&RunError>,
) -> Result<(), Failure> {
    let (node, code) = (error.and_then(|error| error.node.clone()), error.map(|error| error.code.clone()));
    let error = error.map(serde_json::to_string).transpose()?;
    conn.prepare_cached(
        "UPDATE runs SET status = ?2, queued = 0, ended_at = ?3, error = ?4, error_node = ?5, error_code = ?6
         WHERE no = ?1",
    )?
    .execute(params![run_no, status.as_str(), at.map(Timestamp::as_millis), error, node, code])?;
    Ok(())
}

pub(super) fn add_operation(
    conn: &Connection,
    run_no: i64,
    seq: u64,
    operation: &Operation,
) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO run_operations (run_no, id, seq, command) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        run_no,
        operation.id.as_str(),
        seq.cast_signed(),
        operation.command.to_string()
    ])?;
    Ok(())
}

pub(super) fn record(row: &Row<'_>) -> Answer<RunRecord> {
    Ok(RunRecord {
        run_id: parsed(row, "id")?,
        workflow: row.get("workflow")?,
        workflow_version: row.get("workflow_version")?,
        definition: parsed(row, "definition")?,
        status: parsed(row, "status")?,
        accepted_at: moment(row, "accepted_at")?,
        ended_at: maybe_moment(row, "ended_at")?,
        parent: maybe(row, "parent", |text: String| text.parse().ok())?,
        parent_node: row.get("parent_node")?,
        schedule: row.get("schedule")?,
        labels: json(row, "labels")?,
        error: maybe(row, "error", |text: String| serde_json::from_str(&text).ok())?,
        last_seq: row.get::<_, i64>("last_seq")?.cast_unsigned(),
    })
}
