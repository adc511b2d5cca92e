//! Approvals, projected from the events of their runs.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::run::ApprovalRequest;
use switchyard_core::{ApprovalId, RunId, Timestamp};
use switchyard_store::{ApprovalFilter, ApprovalRecord, ApprovalStatus, Approvals, StoreError};

use super::SqliteArchive;
use super::readers::{Answer, list, one};
use super::rows::{json, maybe_moment, moment, parsed, with};
use super::wheres::Wheres;
use super::work::Failure;

const COLUMNS: &str = "id, run, node, status, approver, prompt, payload, created_at,
     timeout_at, decided_at, decided_by, comment";

#[async_trait]
impl Approvals for SqliteArchive {
    async fn approval(&self, approval: &ApprovalId) -> Result<Option<ApprovalRecord>, StoreError> {
        let approval = approval.clone();
        self.readers.ask(move |conn| by_id(conn, &approval)).await
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRecord>, StoreError> {
        let filter = filter.clone();
        self.readers.ask(move |conn| filtered(conn, &filter)).await
    }
}

fn by_id(conn: &Connection, approval: &ApprovalId) -> Answer<Option<ApprovalRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE id = ?1");
    one(conn, &sql, [approval.as_str()], record)
}

fn filtered(conn: &Connection, filter: &ApprovalFilter) -> Answer<Vec<ApprovalRecord>> {
    let mut wheres = Wheres::default();
    wheres.equal("run", filter.run.map(|run| run.to_string()));
    wheres.equal("status", filter.status.map(|status| status.as_str().to_owned()));
    let sql = format!("SELECT {COLUMNS} FROM approvals {wheres} ORDER BY no DESC");
    list(conn, &sql, wheres.params(), record)
}

pub(super) fn request(
    conn: &Connection,
    run: RunId,
    node: &str,
    request: &ApprovalRequest,
    at: Timestamp,
) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO approvals
             (id, run, node, status, approver, prompt, payload, created_at, timeout_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        request.approval.as_str(),
        run.to_string(),
        node,
        ApprovalStatus::Pending.as_str(),
        request.approver,
        request.prompt,
        serde_json::to_string(&request.payload)?,
        at.as_millis(),
        request.timeout_at.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

pub(super) fn decide(
    conn: &Connection,
    approval: &ApprovalId,
    status: ApprovalStatus,
    at: Timestamp,
    by: &str,
    comment: Option<&str>,
) -> Result<(), Failure> {
    conn.prepare_cached(
        "UPDATE approvals SET status = ?2, decided_at = ?3, decided_by = ?4, comment = ?5 WHERE id = ?1",
    )?
    .execute(params![approval.as_str(), status.as_str(), at.as_millis(), by, comment])?;
    Ok(())
}

/// Closes the pending approvals of a node, or of every node. The plus keeps SQLite from scanning all pending
/// approvals instead of those of this run.
pub(super) fn close(
    conn: &Connection,
    run: RunId,
    node: Option<&str>,
    status: ApprovalStatus,
) -> Result<(), Failure> {
    let (of_node, of_run) = (
        "UPDATE approvals SET status = ?2 WHERE run = ?1 AND +status = 'pending' AND node = ?3",
        "UPDATE approvals SET status = ?2 WHERE run = ?1 AND +status = 'pending'",
    );
    match node {
        Some(node) => {
            conn.prepare_cached(of_node)?.execute(params![run.to_string(), status.as_str(), node])?
        }
        None => conn.prepare_cached(of_run)?.execute(params![run.to_string(), status.as_str()])?,
    };
    Ok(())
}

fn record(row: &Row<'_>) -> Answer<ApprovalRecord> {
    Ok(ApprovalRecord {
        approval: ApprovalId::new(row.get::<_, Arc<str>>("id")?),
        run: parsed(row, "run")?,
        node: row.get("node")?,
        status: with(row, "status", |word: String| ApprovalStatus::from_word(&word))?,
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
