//! Rows into records. A row that cannot be one is damage, and says which.

use std::str::FromStr;
use std::sync::Arc;

use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::de::DeserializeOwned;
use switchyard_core::{ApprovalId, Timestamp};
use switchyard_store::{ApprovalRecord, ApprovalStatus, RunRecord, StoreError, WorkflowRecord};

use super::read::Unread;

pub(super) const RUN_COLUMNS: &str =
    "id, workflow, workflow_version, definition, status, accepted_at, ended_at,
     parent, error, (SELECT coalesce(max(seq), 0) FROM events WHERE run_no = runs.no) AS last_seq";

pub(super) const APPROVAL_COLUMNS: &str = "id, run, node, status, approver, prompt, payload, created_at,
     timeout_at, decided_at, decided_by, comment";

pub(super) const WORKFLOW_COLUMNS: &str = "name, version, definition, created_at";

pub(super) fn run_record(row: &Row<'_>) -> Result<RunRecord, Unread> {
    Ok(RunRecord {
        run_id: parsed(row, "id")?,
        workflow: row.get("workflow")?,
        workflow_version: row.get("workflow_version")?,
        definition: parsed(row, "definition")?,
        status: parsed(row, "status")?,
        accepted_at: moment(row, "accepted_at")?,
        ended_at: maybe_moment(row, "ended_at")?,
        parent: maybe(row, "parent", |text: String| text.parse().ok())?,
        error: maybe(row, "error", |text: String| serde_json::from_str(&text).ok())?,
        last_seq: row.get::<_, i64>("last_seq")?.cast_unsigned(),
    })
}

pub(super) fn approval_record(row: &Row<'_>) -> Result<ApprovalRecord, Unread> {
    Ok(ApprovalRecord {
        approval: ApprovalId::new(row.get::<_, Arc<str>>("id")?),
        run: parsed(row, "run")?,
        node: row.get("node")?,
        status: with(row, "status", |word: String| approval_status(&word))?,
        approver: row.get("approver")?,
        prompt: row.get("prompt")?,
        payload: json(row, "payload")?,
        created_at: moment(row, "created_at")?,
        timeout_at: maybe_moment(row, "timeout_at")?,
        decided_at: maybe_moment(row, "decided_at")?,
        decided_by: row.get("decided_by")?,
        comment: row.get("comment")?,
    })
}

pub(super) fn workflow_record(row: &Row<'_>) -> Result<WorkflowRecord, Unread> {
    Ok(WorkflowRecord {
        name: row.get("name")?,
        version: row.get("version")?,
        definition: parsed(row, "definition")?,
        created_at: moment(row, "created_at")?,
    })
}

pub(super) fn approval_word(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Pending => "pending",
        ApprovalStatus::Approved => "approved",
        ApprovalStatus::Rejected => "rejected",
        ApprovalStatus::TimedOut => "timed_out",
        ApprovalStatus::Cancelled => "cancelled",
    }
}

fn approval_status(word: &str) -> Option<ApprovalStatus> {
    use ApprovalStatus as S;
    [S::Pending, S::Approved, S::Rejected, S::TimedOut, S::Cancelled]
        .into_iter()
        .find(|status| approval_word(*status) == word)
}

/// A column whose text is an id, a hash or a status.
pub(super) fn parsed<T: FromStr>(row: &Row<'_>, column: &str) -> Result<T, Unread> {
    with(row, column, |text: String| text.parse().ok())
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T, Unread> {
    with(row, column, |text: String| serde_json::from_str(&text).ok())
}

pub(super) fn moment(row: &Row<'_>, column: &str) -> Result<Timestamp, Unread> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

pub(super) fn maybe_moment(row: &Row<'_>, column: &str) -> Result<Option<Timestamp>, Unread> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

fn with<S: FromSql, T>(row: &Row<'_>, column: &str, read: impl Fn(S) -> Option<T>) -> Result<T, Unread> {
    read(row.get(column)?).ok_or_else(|| damaged(row, column))
}

pub(super) fn maybe<S: FromSql, T>(
    row: &Row<'_>,
    column: &str,
    read: impl Fn(S) -> Option<T>,
) -> Result<Option<T>, Unread> {
    match row.get::<_, Option<S>>(column)? {
        None => Ok(None),
        Some(stored) => read(stored).map(Some).ok_or_else(|| damaged(row, column)),
    }
}

/// Names the row by its first column, which is its id wherever this is used.
pub(super) fn damaged(row: &Row<'_>, column: &str) -> Unread {
    let which = row.get::<_, String>(0).unwrap_or_else(|_| "a row".to_owned());
    Unread::Store(StoreError::Corrupt(format!("column `{column}` of {which} cannot be read")))
}
