//! Bulk jobs, and their result for each run.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::{RunId, Timestamp};
use switchyard_store::{
    BulkCounts, BulkJob, BulkJobs, BulkOutcome, BulkProgress, BulkResult, BulkStatus, StoreError,
};

use super::SqliteArchive;
use super::readers::{Answer, at_most, list, one};
use super::rows::{json, maybe, maybe_moment, moment, parsed, with};
use super::work::{Failure, Work};

const COLUMNS: &str = "id, action, filter, started_by, created_at, status, ended_at, cursor";

#[async_trait]
impl BulkJobs for SqliteArchive {
    async fn bulk_job(&self, id: &str) -> Result<Option<BulkJob>, StoreError> {
        let id = id.to_owned();
        let sql = format!("SELECT {COLUMNS} FROM bulk_jobs WHERE id = ?1");
        self.readers.ask(move |conn| one(conn, &sql, [id], record)).await
    }

    async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkJob>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM bulk_jobs ORDER BY no DESC LIMIT ?1");
        self.readers.ask(move |conn| list(conn, &sql, [at_most(limit)], record)).await
    }

    async fn open_bulk_jobs(&self) -> Result<Vec<BulkJob>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM bulk_jobs WHERE status = 'running' ORDER BY no");
        self.readers.ask(move |conn| list(conn, &sql, [], record)).await
    }

    async fn record_bulk(&self, progress: BulkProgress) -> Result<(), StoreError> {
        self.write(Work::RecordBulk(Box::new(progress))).await.map(drop)
    }

    async fn bulk_results(
        &self,
        id: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<BulkResult>, StoreError> {
        let (id, after) = (id.to_owned(), after.map(|run| run.to_string()).unwrap_or_default());
        let sql =
            "SELECT run, outcome, detail FROM bulk_results WHERE job = ?1 AND run > ?2 ORDER BY run LIMIT ?3";
        self.readers.ask(move |conn| list(conn, sql, params![id, after, at_most(limit)], result)).await
    }

    async fn bulk_counts(&self, id: &str) -> Result<BulkCounts, StoreError> {
        let id = id.to_owned();
        self.readers.ask(move |conn| counts(conn, &id)).await
    }
}

/// Adds a job. An existing job with this id is not changed.
pub(super) fn put(conn: &Connection, job: &BulkJob) -> Result<(), Failure> {
    conn.execute(
        "INSERT OR IGNORE INTO bulk_jobs (id, action, filter, started_by, created_at, status)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            job.id,
            serde_json::to_string(&job.action)?,
            job.filter,
            job.by,
            job.created_at.as_millis(),
            job.status.as_str(),
        ],
    )?;
    Ok(())
}

/// Stops a job. Returns whether it was running.
pub(super) fn stop(conn: &Connection, id: &str, at: Timestamp) -> Result<bool, Failure> {
    let sql = "UPDATE bulk_jobs SET status = 'stopped', ended_at = ?2 WHERE id = ?1 AND status = 'running'";
    Ok(conn.execute(sql, params![id, at.as_millis()])? > 0)
}

pub(super) fn record_progress(conn: &Connection, progress: &BulkProgress) -> Result<(), Failure> {
    let mut add = conn.prepare_cached(
        "INSERT OR IGNORE INTO bulk_results (job, run, outcome, detail) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for result in &progress.results {
        let (run, outcome) = (result.run_id.to_string(), result.outcome.as_str());
        add.execute(params![progress.id, run, outcome, result.detail])?;
    }
    let cursor = progress.cursor.map(|run| run.to_string());
    conn.prepare_cached(
        "UPDATE bulk_jobs SET cursor = max(coalesce(cursor, ''), ?2) WHERE id = ?1 AND ?2 IS NOT NULL",
    )?
    .execute(params![progress.id, cursor])?;
    if let Some(at) = progress.ended_at {
        conn.prepare_cached(
            "UPDATE bulk_jobs SET status = 'done', ended_at = ?2 WHERE id = ?1 AND status = 'running'",
        )?
        .execute(params![progress.id, at.as_millis()])?;
    }
    Ok(())
}

fn counts(conn: &Connection, id: &str) -> Answer<BulkCounts> {
    let sql = "SELECT outcome, count(*) AS runs FROM bulk_results WHERE job = ?1 GROUP BY outcome";
    let found = list(conn, sql, [id], |row| {
        let outcome = with(row, "outcome", |word: String| BulkOutcome::from_word(&word))?;
        Ok((outcome, row.get::<_, i64>("runs")?.cast_unsigned()))
    })?;
    let mut counts = BulkCounts::default();
    found.into_iter().for_each(|(outcome, runs)| counts.add(outcome, runs));
    Ok(counts)
}

fn record(row: &Row<'_>) -> Answer<BulkJob> {
    Ok(BulkJob {
        id: row.get("id")?,
        action: json(row, "action")?,
        filter: row.get("filter")?,
        by: row.get("started_by")?,
        created_at: moment(row, "created_at")?,
        status: with(row, "status", |word: String| BulkStatus::from_word(&word))?,
        ended_at: maybe_moment(row, "ended_at")?,
        cursor: maybe(row, "cursor", |text: String| text.parse().ok())?,
    })
}

fn result(row: &Row<'_>) -> Answer<BulkResult> {
    Ok(BulkResult {
        run_id: parsed(row, "run")?,
        outcome: with(row, "outcome", |word: String| BulkOutcome::from_word(&word))?,
        detail: row.get::<_, Option<Arc<str>>>("detail")?,
    })
}
