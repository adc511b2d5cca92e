//! Bulk jobs, and their result for each run.

use async_trait::async_trait;
use switchyard_core::{RunId, Timestamp};
use switchyard_store::{
    BulkCounts, BulkJob, BulkJobs, BulkOutcome, BulkProgress, BulkResult, BulkStatus, StoreError,
};
use tokio_postgres::{Error, Row, Transaction};

use super::PostgresArchive;
use super::rows::{
    at_most, damaged, json, maybe_moment, maybe_shared, millis, moment, parsed, shared, to_json,
};
use crate::pool::Param;
use crate::text;

const COLUMNS: &str = "id, action, filter, started_by, created_at, status, ended_at, cursor";

/// One statement, so that results and cursor are written together.
const RECORD: &str = "WITH results AS (
        INSERT INTO bulk_results (job, run, outcome, detail)
        SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING)
    UPDATE bulk_jobs SET cursor = greatest(cursor COLLATE \"C\", $5::text COLLATE \"C\"),
        status = CASE WHEN status = 'running' AND $6::bigint IS NOT NULL THEN 'done' ELSE status END,
        ended_at = CASE WHEN status = 'running' THEN $6::bigint ELSE ended_at END
    WHERE id = $1";

#[async_trait]
impl BulkJobs for PostgresArchive {
    async fn bulk_job(&self, id: &str) -> Result<Option<BulkJob>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM bulk_jobs WHERE id = $1");
        self.pool.row(&sql, &[&text::stored(id)]).await?.as_ref().map(record).transpose()
    }

    async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkJob>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM bulk_jobs ORDER BY no DESC LIMIT $1");
        self.pool.rows(&sql, &[&at_most(limit)]).await?.iter().map(record).collect()
    }

    async fn open_bulk_jobs(&self) -> Result<Vec<BulkJob>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM bulk_jobs WHERE status = 'running' ORDER BY no");
        self.pool.rows(&sql, &[]).await?.iter().map(record).collect()
    }

    async fn record_bulk(&self, progress: BulkProgress) -> Result<(), StoreError> {
        let results = &progress.results;
        let runs: Vec<String> = results.iter().map(|result| result.run_id.to_string()).collect();
        let outcomes: Vec<&str> = results.iter().map(|result| result.outcome.as_str()).collect();
        let details: Vec<_> =
            results.iter().map(|result| result.detail.as_deref().map(text::stored)).collect();
        let cursor = progress.cursor.map(|run| run.to_string());
        let ended_at = millis(progress.ended_at);
        let params: [Param<'_>; 6] = [&&*progress.id, &runs, &outcomes, &details, &cursor, &ended_at];
        self.pool.change(RECORD, &params).await.map(drop)
    }

    async fn bulk_results(
        &self,
        id: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<BulkResult>, StoreError> {
        let after = after.map(|run| run.to_string()).unwrap_or_default();
        let sql =
            "SELECT run, outcome, detail FROM bulk_results WHERE job = $1 AND run > $2 ORDER BY run LIMIT $3";
        let rows = self.pool.rows(sql, &[&text::stored(id), &after, &at_most(limit)]).await?;
        rows.iter().map(result).collect()
    }

    async fn bulk_counts(&self, id: &str) -> Result<BulkCounts, StoreError> {
        let sql = "SELECT outcome, count(*) FROM bulk_results WHERE job = $1 GROUP BY outcome";
        let mut counts = BulkCounts::default();
        for row in self.pool.rows(sql, &[&text::stored(id)]).await? {
            counts.add(outcome(&row)?, row.get::<_, i64>(1).cast_unsigned());
        }
        Ok(counts)
    }
}

/// Adds a job. An existing job with this id is not changed.
pub(super) async fn put(transaction: &Transaction<'_>, job: &BulkJob) -> Result<(), Error> {
    let sql = "INSERT INTO bulk_jobs (id, action, filter, started_by, created_at, status)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let (action, filter, by) = (to_json(&job.action), text::stored(&job.filter), text::stored(&job.by));
    let (at, status) = (job.created_at.as_millis(), job.status.as_str());
    let params: [Param<'_>; 6] = [&&*job.id, &action, &filter, &by, &at, &status];
    transaction.execute(sql, &params).await.map(drop)
}

/// Stops a job. Returns whether it was running.
pub(super) async fn stop(transaction: &Transaction<'_>, id: &str, at: Timestamp) -> Result<bool, Error> {
    let sql = "UPDATE bulk_jobs SET status = 'stopped', ended_at = $2 WHERE id = $1 AND status = 'running'";
    Ok(transaction.execute(sql, &[&text::stored(id), &at.as_millis()]).await? > 0)
}

fn record(row: &Row) -> Result<BulkJob, StoreError> {
    let id: &str = row.get("id");
    let cursor: Option<&str> = row.get("cursor");
    Ok(BulkJob {
        id: id.into(),
        action: json(row, "action")?,
        filter: shared(row, "filter"),
        by: shared(row, "started_by"),
        created_at: moment(row, "created_at"),
        status: BulkStatus::from_word(row.get("status")).ok_or_else(|| damaged("status", id))?,
        ended_at: maybe_moment(row, "ended_at"),
        cursor: cursor.map(str::parse).transpose().map_err(|_| damaged("cursor", id))?,
    })
}

fn result(row: &Row) -> Result<BulkResult, StoreError> {
    Ok(BulkResult {
        run_id: parsed(row, "run")?,
        outcome: outcome(row)?,
        detail: maybe_shared(row, "detail"),
    })
}

fn outcome(row: &Row) -> Result<BulkOutcome, StoreError> {
    BulkOutcome::from_word(row.get("outcome")).ok_or_else(|| damaged("outcome", row.get(0)))
}
