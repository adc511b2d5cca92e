//! Rows into records. A row that cannot be one is damage, and says which.

use std::str::FromStr;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use switchyard_core::{ApprovalId, Timestamp};
use switchyard_store::{ApprovalRecord, ApprovalStatus, RunRecord, StoreError, WorkflowRecord};
use tokio_postgres::Row;

use crate::text;

pub(super) const RUN_COLUMNS: &str =
    "id, workflow, workflow_version, definition, status, accepted_at, ended_at, parent, error, last_seq";

pub(super) const APPROVAL_COLUMNS: &str = "id, run, node, status, approver, prompt, payload, created_at,
     timeout_at, decided_at, decided_by, comment";

pub(super) const WORKFLOW_COLUMNS: &str = "name, version, definition, created_at";

pub(super) fn run_record(row: &Row) -> Result<RunRecord, StoreError> {
    let parent: Option<&str> = row.get("parent");
    let error: Option<&str> = row.get("error");
    Ok(RunRecord {
        run_id: parsed(row, "id")?,
        workflow: shared(row, "workflow"),
        workflow_version: row.get::<_, Option<i32>>("workflow_version").map(i32::cast_unsigned),
        definition: parsed(row, "definition")?,
        status: parsed(row, "status")?,
        accepted_at: moment(row, "accepted_at"),
        ended_at: maybe_moment(row, "ended_at"),
        parent: parent.map(str::parse).transpose().map_err(|_| damaged("parent", row.get(0)))?,
        error: error.map(serde_json::from_str).transpose().map_err(|_| damaged("error", row.get(0)))?,
        last_seq: row.get::<_, i64>("last_seq").cast_unsigned(),
    })
}

pub(super) fn approval_record(row: &Row) -> Result<ApprovalRecord, StoreError> {
    Ok(ApprovalRecord {
        approval: ApprovalId::new(shared(row, "id")),
        run: parsed(row, "run")?,
        node: shared(row, "node"),
        status: approval_status(row.get("status")).ok_or_else(|| damaged("status", row.get(0)))?,
        approver: maybe_shared(row, "approver"),
        prompt: maybe_shared(row, "prompt"),
        payload: json(row, "payload")?,
        created_at: moment(row, "created_at"),
        timeout_at: maybe_moment(row, "timeout_at"),
        decided_at: maybe_moment(row, "decided_at"),
        decided_by: maybe_shared(row, "decided_by"),
        comment: maybe_shared(row, "comment"),
    })
}

pub(super) fn workflow_record(row: &Row) -> Result<WorkflowRecord, StoreError> {
    Ok(WorkflowRecord {
        name: text::read(row.get("name")),
        version: row.get::<_, i32>("version").cast_unsigned(),
        definition: parsed(row, "definition")?,
        created_at: moment(row, "created_at"),
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
pub(super) fn parsed<T: FromStr>(row: &Row, column: &str) -> Result<T, StoreError> {
    row.get::<_, &str>(column).parse().map_err(|_| damaged(column, row.get(0)))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, StoreError> {
    serde_json::from_str(row.get(column)).map_err(|_| damaged(column, row.get(0)))
}

pub(super) fn moment(row: &Row, column: &str) -> Timestamp {
    Timestamp::from_millis(row.get(column))
}

pub(super) fn maybe_moment(row: &Row, column: &str) -> Option<Timestamp> {
    row.get::<_, Option<i64>>(column).map(Timestamp::from_millis)
}

pub(super) fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

pub(super) fn shared(row: &Row, column: &str) -> Arc<str> {
    text::read(row.get(column)).into()
}

pub(super) fn maybe_shared(row: &Row, column: &str) -> Option<Arc<str>> {
    row.get::<_, Option<String>>(column).map(|stored| text::read(stored).into())
}

/// Names the row by its first column, which is its id wherever this is used.
pub(super) fn damaged(column: &str, which: &str) -> StoreError {
    StoreError::Corrupt(format!("column `{column}` of {which} cannot be read"))
}
