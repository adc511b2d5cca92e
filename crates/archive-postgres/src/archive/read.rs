//! Questions.

use std::sync::Arc;

use switchyard_core::run::Event;
use switchyard_core::{ApprovalId, Hash, OperationId, Payload, RunId, Timestamp};
use switchyard_store::{
    AppliedOperation, ApprovalFilter, ApprovalRecord, ArchiveMark, Page, RunFilter, RunRecord, StoreError,
    Unfinished,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::rows::{
    APPROVAL_COLUMNS, RUN_COLUMNS, approval_record, approval_word, json, moment, parsed, run_record, shared,
};
use super::session::event_of;
use crate::pool::{Param, Pool};
use crate::text;

/// Postgres counts in i64.
fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) async fn mark(pool: &Pool) -> Result<ArchiveMark, StoreError> {
    let target = pool.target();
    let location = format!("{target}, schema `{}`", target.schema()).into();
    let row = pool.row("SELECT id, position FROM archive WHERE no = 1", &[]).await?;
    let row =
        row.ok_or_else(|| StoreError::Corrupt(format!("{location} does not say which archive it is")))?;
    Ok(ArchiveMark { id: shared(&row, "id"), position: moment(&row, "position"), location })
}

pub(super) async fn events(
    pool: &Pool,
    run: RunId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let sql =
        "SELECT run, seq, at, body, checksum FROM events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let rows = pool.rows(sql, &[&run.to_string(), &after, &at_most(limit)]).await?;
    rows.iter().map(event_of).collect()
}

pub(super) async fn run(pool: &Pool, run: RunId) -> Result<Option<RunRecord>, StoreError> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = $1");
    pool.row(&sql, &[&run.to_string()]).await?.as_ref().map(run_record).transpose()
}

pub(super) async fn run_operation(
    pool: &Pool,
    run: RunId,
    id: &OperationId,
) -> Result<Option<AppliedOperation>, StoreError> {
    let sql = "SELECT seq, command FROM run_operations WHERE run = $1 AND id = $2";
    let row = pool.row(sql, &[&run.to_string(), &id.as_str()]).await?;
    let applied = |row: &Row| {
        let seq = row.get::<_, i64>("seq").cast_unsigned();
        Ok(AppliedOperation { seq, command: parsed(row, "command")? })
    };
    row.as_ref().map(applied).transpose()
}

pub(super) async fn runs(pool: &Pool, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError> {
    let mut wheres = Wheres::default();
    wheres.add("status =", filter.status.map(|status| status.as_str().to_owned()));
    wheres.add("workflow =", filter.workflow.as_ref().map(|name| text::stored(name).into_owned()));
    wheres.add("id <", filter.before.map(|before| before.to_string()));
    if !filter.include_children {
        wheres.clauses.push("parent IS NULL".to_owned());
    }
    // One more than asked for tells whether there is another page.
    let limit = at_most(filter.limit.saturating_add(1));
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs {wheres} ORDER BY id DESC LIMIT {limit}");
    let rows = pool.rows(&sql, &wheres.params()).await?;
    let mut items = rows.iter().map(run_record).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > filter.limit;
    items.truncate(filter.limit);
    let next = if more { items.last().map(|run| run.run_id) } else { None };
    Ok(Page { items, next })
}

pub(super) async fn unfinished(pool: &Pool) -> Result<Vec<Unfinished>, StoreError> {
    let sql = "SELECT id, last_seq FROM runs WHERE ended_at IS NULL ORDER BY id";
    let read = |row: &_| {
        Ok(Unfinished { run: parsed(row, "id")?, last_seq: row.get::<_, i64>("last_seq").cast_unsigned() })
    };
    pool.rows(sql, &[]).await?.iter().map(read).collect()
}

pub(super) async fn unfinished_with_ended_children(pool: &Pool) -> Result<Vec<RunId>, StoreError> {
    let sql = "SELECT id FROM runs WHERE ended_at IS NULL
                 AND EXISTS (SELECT 1 FROM runs AS child WHERE child.parent = runs.id)
                 AND NOT EXISTS (SELECT 1 FROM runs AS child
                                 WHERE child.parent = runs.id AND child.ended_at IS NULL)
               ORDER BY id";
    pool.rows(sql, &[]).await?.iter().map(|row| parsed(row, "id")).collect()
}

pub(super) async fn by_idempotency_key(pool: &Pool, key: &str) -> Result<Option<(RunId, Hash)>, StoreError> {
    let sql = "SELECT id, idempotency_body FROM runs WHERE idempotency_key = $1";
    let row = pool.row(sql, &[&text::stored(key)]).await?;
    row.map(|row| Ok((parsed(&row, "id")?, parsed(&row, "idempotency_body")?))).transpose()
}

pub(super) async fn has_definition(pool: &Pool, hash: Hash) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM definitions WHERE hash = $1";
    Ok(pool.row(sql, &[&hash.to_string()]).await?.is_some())
}

pub(super) async fn definition(pool: &Pool, hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
    let row = pool.row("SELECT body FROM definitions WHERE hash = $1", &[&hash.to_string()]).await?;
    Ok(row.map(|row| row.get::<_, &str>("body").into()))
}

pub(super) async fn approval(
    pool: &Pool,
    approval: &ApprovalId,
) -> Result<Option<ApprovalRecord>, StoreError> {
    let sql = format!("SELECT {APPROVAL_COLUMNS} FROM approvals WHERE id = $1");
    let row = pool.row(&sql, &[&text::stored(approval.as_str())]).await?;
    row.as_ref().map(approval_record).transpose()
}

pub(super) async fn approvals(
    pool: &Pool,
    filter: &ApprovalFilter,
) -> Result<Vec<ApprovalRecord>, StoreError> {
    let mut wheres = Wheres::default();
    wheres.add("run =", filter.run.map(|run| run.to_string()));
    wheres.add("status =", filter.status.map(|status| approval_word(status).to_owned()));
    let sql = format!("SELECT {APPROVAL_COLUMNS} FROM approvals {wheres} ORDER BY no DESC");
    pool.rows(&sql, &wheres.params()).await?.iter().map(approval_record).collect()
}

pub(super) async fn cached(
    pool: &Pool,
    scope: &str,
    key: &str,
    now: Timestamp,
) -> Result<Option<Payload>, StoreError> {
    let sql = "SELECT key, value FROM cache WHERE scope = $1 AND key = $2 AND expires_at > $3";
    let row = pool.row(sql, &[&text::stored(scope), &text::stored(key), &now.as_millis()]).await?;
    row.map(|row| json(&row, "value")).transpose()
}

/// The conditions that a filter really has.
#[derive(Default)]
struct Wheres {
    clauses: Vec<String>,
    values: Vec<String>,
}

impl Wheres {
    /// `comparison` is a column and an operator.
    fn add(&mut self, comparison: &str, value: Option<String>) {
        if let Some(value) = value {
            self.values.push(value);
            self.clauses.push(format!("{comparison} ${}", self.values.len()));
        }
    }

    fn params(&self) -> Vec<Param<'_>> {
        self.values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
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
