//! Approvals, projected from the events of their runs.

use async_trait::async_trait;
use switchyard_core::ApprovalId;
use switchyard_store::{ApprovalFilter, ApprovalRecord, ApprovalStatus, Approvals, StoreError};
use tokio_postgres::Row;

use super::PostgresArchive;
use super::rows::{damaged, json, maybe_moment, maybe_shared, moment, parsed, shared};
use super::wheres::Wheres;
use crate::text;

const COLUMNS: &str = "id, run, node, status, approver, prompt, payload, created_at,
     timeout_at, decided_at, decided_by, comment";

#[async_trait]
impl Approvals for PostgresArchive {
    async fn approval(&self, approval: &ApprovalId) -> Result<Option<ApprovalRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE id = $1");
        let row = self.pool.row(&sql, &[&text::stored(approval.as_str())]).await?;
        row.as_ref().map(record).transpose()
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRecord>, StoreError> {
        let mut wheres = Wheres::default();
        wheres.add("run =", filter.run.map(|run| run.to_string()));
        wheres.add("status =", filter.status.map(|status| status.as_str().to_owned()));
        let sql = format!("SELECT {COLUMNS} FROM approvals {wheres} ORDER BY no DESC");
        self.pool.rows(&sql, &wheres.params()).await?.iter().map(record).collect()
    }
}

fn record(row: &Row) -> Result<ApprovalRecord, StoreError> {
    Ok(ApprovalRecord {
        approval: ApprovalId::new(shared(row, "id")),
        run: parsed(row, "run")?,
        node: shared(row, "node"),
        status: ApprovalStatus::from_word(row.get("status")).ok_or_else(|| damaged("status", row.get(0)))?,
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
