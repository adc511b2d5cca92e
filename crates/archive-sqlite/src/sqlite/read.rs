//! Questions. Each is answered on a connection of its own, which sees everything that was acknowledged.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Params, Row, ToSql, params};
use switchyard_core::run::Event;
use switchyard_core::{ApprovalId, Hash, OperationId, Payload, RunId, Timestamp};
use switchyard_store::{
    AppliedOperation, ApprovalFilter, ApprovalRecord, Page, RunFilter, RunRecord, StoreError, Unfinished,
    WorkflowRecord, verify_event,
};
use tokio::sync::Semaphore;

use super::error::cannot_read;
use super::rows::{
    APPROVAL_COLUMNS, RUN_COLUMNS, WORKFLOW_COLUMNS, approval_record, approval_word, damaged, json, moment,
    parsed, run_record, workflow_record,
};
use super::{Access, connect};

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum Unread {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Unread {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) type Answer<T> = Result<T, Unread>;

/// Connections to ask on. They are opened when needed and kept: opening one reads and parses the whole schema, which
/// costs many times what a question does.
#[derive(Debug)]
pub(super) struct Readers {
    path: Arc<Path>,
    idle: Mutex<Vec<Connection>>,
    /// One permit for each connection; callers wait here and not in a thread.
    permits: Semaphore,
}

/// Questions answered at once. More than there are cores, because some wait for the disk.
const CONNECTIONS_MAX: usize = 8;

impl Readers {
    pub(super) fn new(path: Arc<Path>) -> Self {
        Self { path, idle: Mutex::new(Vec::new()), permits: Semaphore::new(CONNECTIONS_MAX) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Connection) -> Answer<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.clone();
        // Never closed, so there is always one to come.
        let _permit = self.permits.acquire().await;
        match tokio::task::spawn_blocking(move || readers.ask_now(question)).await {
            Ok(answer) => answer,
            Err(e) => Err(StoreError::unavailable(format!("a question to the archive was interrupted: {e}"))),
        }
    }

    fn ask_now<T>(&self, question: impl FnOnce(&Connection) -> Answer<T>) -> Result<T, StoreError> {
        let conn = self.take().map_err(|e| cannot_read(&self.path, &e))?;
        let answer = question(&conn);
        self.give_back(conn);
        answer.map_err(|unread| match unread {
            Unread::Sqlite(e) => cannot_read(&self.path, &e),
            Unread::Store(e) => e,
        })
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        // A statement of its own: the guard must not be held while a connection is opened.
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| connect(&self.path, Access::Read), Ok)
    }

    fn give_back(&self, conn: Connection) {
        let mut idle = self.idle.lock();
        // A question whose asker has gone away may still be at it.
        if idle.len() < CONNECTIONS_MAX {
            idle.push(conn);
        }
    }
}

pub(super) fn list<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Answer<T>,
) -> Answer<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

pub(super) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Answer<T>,
) -> Answer<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// SQLite counts in i64.
fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn events(conn: &Connection, run: RunId, after: u64, limit: usize) -> Answer<Vec<Event>> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    list(
        conn,
        "SELECT 'event ' || seq || ' of ' || ?1, seq, at, body, checksum FROM events
         WHERE run_no = (SELECT no FROM runs WHERE id = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3",
        params![run.to_string(), after, at_most(limit)],
        |row| event(run, row),
    )
}

fn event(run: RunId, row: &Row<'_>) -> Answer<Event> {
    let (seq, at) = (row.get::<_, i64>("seq")?.cast_unsigned(), moment(row, "at")?);
    // As bytes: what is damaged need not be text any more.
    let body = row.get_ref("body")?.as_bytes().unwrap_or_default();
    verify_event(row.get("checksum")?, run, seq, at, body).map_err(Unread::Store)?;
    let kind = serde_json::from_slice(body).map_err(|_| damaged(row, "body"))?;
    Ok(Event { run, seq, at, kind })
}

pub(super) fn run(conn: &Connection, run: RunId) -> Answer<Option<RunRecord>> {
    one(conn, &format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?1"), [run.to_string()], run_record)
}

pub(super) fn runs(conn: &Connection, filter: &RunFilter) -> Answer<Page<RunRecord>> {
    let mut wheres = Wheres::default();
    wheres.equal("status", filter.status.map(|status| status.as_str().to_owned()));
    wheres.equal("workflow", filter.workflow.clone());
    if let Some(before) = filter.before {
        wheres.push("id < ?", Box::new(before.to_string()));
    }
    if !filter.include_children {
        wheres.clauses.push("parent IS NULL".to_owned());
    }
    // One more than asked for tells whether there is another page.
    let limit = at_most(filter.limit.saturating_add(1));
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs {wheres} ORDER BY id DESC LIMIT {limit}");
    let mut items = list(conn, &sql, wheres.params(), run_record)?;
    let more = items.len() > filter.limit;
    items.truncate(filter.limit);
    let next = if more { items.last().map(|run| run.run_id) } else { None };
    Ok(Page { items, next })
}

pub(super) fn unfinished(conn: &Connection) -> Answer<Vec<Unfinished>> {
    let sql = "SELECT id, (SELECT max(seq) FROM events WHERE run_no = runs.no) AS last_seq FROM runs
               WHERE status IN ('queued', 'running', 'paused', 'closing', 'compensating') ORDER BY id";
    list(conn, sql, [], |row| {
        let last_seq = row.get::<_, i64>("last_seq")?.cast_unsigned();
        Ok(Unfinished { run: parsed(row, "id")?, last_seq })
    })
}

pub(super) fn unfinished_with_ended_children(conn: &Connection) -> Answer<Vec<RunId>> {
    let sql = "SELECT id FROM runs WHERE status IN ('queued', 'running', 'paused', 'closing', 'compensating')
                 AND EXISTS (SELECT 1 FROM runs AS child WHERE child.parent = runs.id)
                 AND NOT EXISTS (SELECT 1 FROM runs AS child
                                 WHERE child.parent = runs.id AND child.ended_at IS NULL)
               ORDER BY id";
    list(conn, sql, [], |row| parsed(row, "id"))
}

pub(super) fn by_idempotency_key(conn: &Connection, key: &str) -> Answer<Option<(RunId, Hash)>> {
    let sql = "SELECT id, idempotency_body FROM runs WHERE idempotency_key = ?1";
    one(conn, sql, [key], |row| Ok((parsed(row, "id")?, parsed(row, "idempotency_body")?)))
}

pub(super) fn run_operation(
    conn: &Connection,
    run: RunId,
    id: &OperationId,
) -> Answer<Option<AppliedOperation>> {
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

pub(super) fn has_definition(conn: &Connection, hash: Hash) -> Answer<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM definitions WHERE hash = ?1")?.exists([hash.to_string()])?)
}

pub(super) fn definition(conn: &Connection, hash: Hash) -> Answer<Option<Arc<str>>> {
    let mut statement = conn.prepare_cached("SELECT body FROM definitions WHERE hash = ?1")?;
    Ok(statement.query_row([hash.to_string()], |row| row.get(0)).optional()?)
}

pub(super) fn workflow(
    conn: &Connection,
    name: &str,
    version: Option<u32>,
) -> Answer<Option<WorkflowRecord>> {
    let sql = format!(
        "SELECT {WORKFLOW_COLUMNS} FROM workflows WHERE name = ?1 AND version = coalesce(?2, version)
         ORDER BY version DESC LIMIT 1"
    );
    one(conn, &sql, params![name, version], workflow_record)
}

pub(super) fn workflows(conn: &Connection) -> Answer<Vec<WorkflowRecord>> {
    let sql = format!(
        "SELECT {WORKFLOW_COLUMNS} FROM workflows AS newest
         WHERE version = (SELECT max(version) FROM workflows WHERE name = newest.name) ORDER BY name"
    );
    list(conn, &sql, [], workflow_record)
}

pub(super) fn approval(conn: &Connection, approval: &ApprovalId) -> Answer<Option<ApprovalRecord>> {
    let sql = format!("SELECT {APPROVAL_COLUMNS} FROM approvals WHERE id = ?1");
    one(conn, &sql, [approval.as_str()], approval_record)
}

pub(super) fn approvals(conn: &Connection, filter: &ApprovalFilter) -> Answer<Vec<ApprovalRecord>> {
    let mut wheres = Wheres::default();
    wheres.equal("run", filter.run.map(|run| run.to_string()));
    wheres.equal("status", filter.status.map(|status| approval_word(status).to_owned()));
    let sql = format!("SELECT {APPROVAL_COLUMNS} FROM approvals {wheres} ORDER BY no DESC");
    list(conn, &sql, wheres.params(), approval_record)
}

pub(super) fn cached(conn: &Connection, scope: &str, key: &str, now: Timestamp) -> Answer<Option<Payload>> {
    let sql = "SELECT key, value FROM cache WHERE scope = ?1 AND key = ?2 AND expires_at > ?3";
    one(conn, sql, params![scope, key, now.as_millis()], |row| json(row, "value"))
}

/// The conditions that a filter really has: an index is used only if its column is compared in the text.
#[derive(Default)]
struct Wheres {
    clauses: Vec<String>,
    values: Vec<Box<dyn ToSql>>,
}

impl Wheres {
    fn push(&mut self, clause: &str, value: Box<dyn ToSql>) {
        self.clauses.push(clause.to_owned());
        self.values.push(value);
    }

    fn equal(&mut self, column: &str, value: Option<String>) {
        if let Some(value) = value {
            self.push(&format!("{column} = ?"), Box::new(value));
        }
    }

    fn params(&self) -> impl Params + '_ {
        rusqlite::params_from_iter(self.values.iter().map(AsRef::as_ref))
    }
}

impl std::fmt::Display for Wheres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.clauses.is_empty() {
            return Ok(());
        }
        write!(f, "WHERE {}", self.clauses.join(" AND "))
    }
}
