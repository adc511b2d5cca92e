//! Removes runs that ended long ago.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use switchyard_core::Timestamp;
use switchyard_store::{Retention, RetentionPolicy, StoreError};

use super::SqliteArchive;
use super::readers::at_most;
use super::work::{Failure, Performed, Work};

#[async_trait]
impl Retention for SqliteArchive {
    async fn retain(
        &self,
        policy: &RetentionPolicy,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.write(Work::Retain { policy: *policy, now, limit }).await.map(Performed::removed)
    }
}

/// Runs that the policy does not keep, with the runs they started. `live` are runs that have not ended and the runs
/// that started them: a parent is kept as long as one of its children has not ended.
const DOOMED: &str = "CREATE TEMP TABLE doomed AS WITH RECURSIVE
    live (id, parent) AS (
        SELECT id, parent FROM runs WHERE status IN ('queued', 'running', 'paused', 'closing', 'compensating')
        UNION SELECT runs.id, runs.parent FROM runs JOIN live ON runs.id = live.parent),
    oldest (id) AS (
        SELECT id FROM runs
        WHERE ended_at IS NOT NULL AND parent IS NULL AND id NOT IN (SELECT id FROM live)
            AND (ended_at <= ?1 OR (ended_at, id) <= (
                SELECT ended_at, id FROM runs WHERE ended_at IS NOT NULL AND parent IS NULL
                ORDER BY ended_at DESC, id DESC LIMIT 1 OFFSET ?2))
        ORDER BY ended_at, id LIMIT ?3),
    doomed (id) AS (
        SELECT id FROM oldest
        UNION SELECT runs.id FROM runs JOIN doomed ON runs.parent = doomed.id)
    SELECT runs.id, runs.no, runs.parent FROM runs JOIN doomed USING (id)";

/// Removes runs. Returns how many, not counting the runs they had started.
pub(super) fn pass(
    conn: &Connection,
    policy: &RetentionPolicy,
    now: Timestamp,
    limit: usize,
) -> Result<usize, Failure> {
    let forgotten = now.minus(policy.payload_grace).as_millis();
    conn.execute("DELETE FROM payload_refs WHERE released_at <= ?1", [forgotten])?;
    let ended_by = policy.keep_for.map(|age| now.minus(age).as_millis());
    let keep = policy.keep_runs.map_or(i64::MAX, |runs| i64::try_from(runs).unwrap_or(i64::MAX));
    // An age compared with NULL is never too old; past the largest offset there are never too many runs.
    conn.execute("DROP TABLE IF EXISTS temp.doomed", [])?;
    conn.execute(DOOMED, params![ended_by, keep, at_most(limit)])?;
    let removed = "SELECT count(*) FROM doomed WHERE parent IS NULL";
    let removed = conn.query_row(removed, [], |row| row.get::<_, i64>(0))?;
    remove_doomed(conn, now)?;
    Ok(usize::try_from(removed).unwrap_or(0))
}

/// Removes the runs of the table `doomed` with everything that belongs to them, and the table.
pub(super) fn remove_doomed(conn: &Connection, now: Timestamp) -> Result<(), Failure> {
    conn.execute("DELETE FROM events WHERE run_no IN (SELECT no FROM doomed)", [])?;
    conn.execute("DELETE FROM run_operations WHERE run_no IN (SELECT no FROM doomed)", [])?;
    conn.execute("DELETE FROM run_labels WHERE run IN (SELECT id FROM doomed)", [])?;
    conn.execute("DELETE FROM approvals WHERE run IN (SELECT id FROM doomed)", [])?;
    conn.execute("DELETE FROM dead_letters WHERE run IN (SELECT id FROM doomed)", [])?;
    conn.execute(
        "UPDATE payload_refs SET released_at = ?1 WHERE holder IN (SELECT id FROM doomed)",
        [now.as_millis()],
    )?;
    conn.execute("DELETE FROM runs WHERE no IN (SELECT no FROM doomed)", [])?;
    conn.execute("DROP TABLE temp.doomed", [])?;
    Ok(())
}
