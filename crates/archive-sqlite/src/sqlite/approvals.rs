//! Approvals as the events of their runs leave them.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row};
use switchyard_core::ApprovalId;
use switchyard_store::{ApprovalFilter, ApprovalRecord, ApprovalStatus, Approvals, StoreError};

use super::SqliteArchive;
use super::readers::{Answer, list, one};
use super::rows::{json, maybe_moment, moment, parsed, with};
use super::wheres::Wheres;

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
