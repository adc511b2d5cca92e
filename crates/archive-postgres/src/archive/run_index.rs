//! Runs, projected from their events, and the commands that took effect on them.

use async_trait::async_trait;
use switchyard_core::{Hash, Labels, OperationId, RunId};
use switchyard_store::{
    AppliedOperation, Page, RunCount, RunFilter, RunIndex, RunRecord, StoreError, Unfinished,
};
use tokio_postgres::Row;

use super::PostgresArchive;
use super::rows::{damaged, maybe_moment, maybe_shared, moment, parsed, shared};
use super::run_search;
use crate::pool::BULK_ANSWER_MAX;
use crate::text;

pub(super) const COLUMNS: &str = "id, workflow, workflow_version, definition, status, accepted_at, ended_at,
    parent, parent_node, schedule, error, last_seq,
    (SELECT json_object_agg(key, value)::text FROM run_labels WHERE run = runs.id) AS labels";

#[async_trait]
impl RunIndex for PostgresArchive {
    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = $1");
        self.pool.row(&sql, &[&run.to_string()]).await?.as_ref().map(record).transpose()
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError> {
        run_search::page(&self.pool, filter).await
    }

    async fn count_runs(&self, filter: &RunFilter, max: Option<u64>) -> Result<RunCount, StoreError> {
        run_search::count(&self.pool, filter, max).await
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        let sql = "SELECT id, last_seq FROM runs WHERE ended_at IS NULL ORDER BY id";
        let read = |row: &Row| {
            let last_seq = row.get::<_, i64>("last_seq").cast_unsigned();
            Ok(Unfinished { run: parsed(row, "id")?, last_seq })
        };
        self.pool.within(BULK_ANSWER_MAX).rows(sql, &[]).await?.iter().map(read).collect()
    }

    async fn unfinished_with_ended_children(&self) -> Result<Vec<RunId>, StoreError> {
        let sql = "SELECT id FROM runs WHERE ended_at IS NULL
                     AND EXISTS (SELECT 1 FROM runs AS child WHERE child.parent = runs.id)
                     AND NOT EXISTS (SELECT 1 FROM runs AS child
                                     WHERE child.parent = runs.id AND child.ended_at IS NULL)
                   ORDER BY id";
        self.pool.within(BULK_ANSWER_MAX).rows(sql, &[]).await?.iter().map(|row| parsed(row, "id")).collect()
    }

    async fn by_idempotency_key(&self, key: &str) -> Result<Option<(RunId, Hash)>, StoreError> {
        let sql = "SELECT id, idempotency_body FROM runs WHERE idempotency_key = $1";
        let row = self.pool.row(sql, &[&text::stored(key)]).await?;
        row.map(|row| Ok((parsed(&row, "id")?, parsed(&row, "idempotency_body")?))).transpose()
    }

    async fn run_operation(
        &self,
        run: RunId,
        id: &OperationId,
    ) -> Result<Option<AppliedOperation>, StoreError> {
        let sql = "SELECT seq, command FROM run_operations WHERE run = $1 AND id = $2";
        let row = self.pool.row(sql, &[&run.to_string(), &id.as_str()]).await?;
        let applied = |row: &Row| {
            let seq = row.get::<_, i64>("seq").cast_unsigned();
            Ok(AppliedOperation { seq, command: parsed(row, "command")? })
        };
        row.as_ref().map(applied).transpose()
    }
}

pub(super) fn record(row: &Row) -> Result<RunRecord, StoreError> {
    let parent: Option<&str> = row.get("parent");
    let error: Option<&str> = row.get("error");
    let labels: Option<&str> = row.get("labels");
    Ok(RunRecord {
        run_id: parsed(row, "id")?,
        workflow: shared(row, "workflow"),
        workflow_version: row.get::<_, Option<i32>>("workflow_version").map(i32::cast_unsigned),
        definition: parsed(row, "definition")?,
        status: parsed(row, "status")?,
        accepted_at: moment(row, "accepted_at"),
        ended_at: maybe_moment(row, "ended_at"),
        parent: parent.map(str::parse).transpose().map_err(|_| damaged("parent", row.get(0)))?,
        parent_node: maybe_shared(row, "parent_node"),
        schedule: maybe_shared(row, "schedule"),
        labels: labels
            .map_or(Ok(Labels::new()), serde_json::from_str)
            .map_err(|_| damaged("labels", row.get(0)))?,
        error: error.map(serde_json::from_str).transpose().map_err(|_| damaged("error", row.get(0)))?,
        last_seq: row.get::<_, i64>("last_seq").cast_unsigned(),
    })
}
