//! What is no longer kept.

use std::collections::HashSet;

use switchyard_core::{Hash, Timestamp};
use switchyard_store::{Retention, StoreError};

use super::rows::{millis, parsed};
use crate::pool::Pool;

/// One statement, so that a run is removed whole or not at all. `live` are runs that have not ended and the runs that started
/// them: a parent is kept for as long as a child of it goes on. Locked rows are left for the next pass.
const REMOVE_RUNS: &str = "WITH RECURSIVE
    live (id, parent) AS (
        SELECT id, parent FROM runs WHERE ended_at IS NULL
        UNION SELECT runs.id, runs.parent FROM runs JOIN live ON runs.id = live.parent),
    oldest AS (
        SELECT id FROM runs
        WHERE ended_at IS NOT NULL AND parent IS NULL AND id NOT IN (SELECT id FROM live)
            AND (ended_at <= $1 OR (ended_at, id) <= (
                SELECT ended_at, id FROM runs WHERE ended_at IS NOT NULL AND parent IS NULL
                ORDER BY ended_at DESC, id DESC OFFSET $2 LIMIT 1))
        ORDER BY ended_at, id LIMIT $3 FOR UPDATE SKIP LOCKED),
    doomed (id) AS (
        SELECT id FROM oldest
        UNION SELECT runs.id FROM runs JOIN doomed ON runs.parent = doomed.id),
    no_events AS (DELETE FROM events USING doomed WHERE events.run = doomed.id),
    no_operations AS (DELETE FROM run_operations USING doomed WHERE run_operations.run = doomed.id),
    no_approvals AS (DELETE FROM approvals USING doomed WHERE approvals.run = doomed.id),
    no_dead_letters AS (DELETE FROM dead_letters USING doomed WHERE dead_letters.run = doomed.id),
    released AS (UPDATE payload_refs SET released_at = $4 FROM doomed WHERE holder = doomed.id),
    removed AS (DELETE FROM runs USING doomed WHERE runs.id = doomed.id RETURNING runs.parent)
    SELECT count(*) FROM removed WHERE parent IS NULL";

pub(super) async fn pass(
    pool: &Pool,
    policy: &Retention,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let forget = "DELETE FROM payload_refs WHERE released_at <= $1";
    pool.change(forget, &[&now.minus(policy.payload_grace).as_millis()]).await?;
    let ended_by = policy.keep_for.map(|age| now.minus(age));
    let keep = policy.keep_runs.map(|runs| i64::try_from(runs).unwrap_or(i64::MAX));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // Compared with NULL, nothing is too old; behind the largest offset, nothing is too many.
    let params = (millis(ended_by), keep.unwrap_or(i64::MAX), now.as_millis());
    let row = pool.row(REMOVE_RUNS, &[&params.0, &params.1, &limit, &params.2]).await?;
    Ok(row.map_or(0, |row| usize::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
}

pub(super) async fn held_payloads(
    pool: &Pool,
    of: &[Hash],
    since: Timestamp,
) -> Result<HashSet<Hash>, StoreError> {
    let sql = "SELECT DISTINCT hash FROM payload_refs
        WHERE hash = ANY($1::text[]) AND (released_at IS NULL OR released_at > $2)";
    let hashes: Vec<String> = of.iter().map(ToString::to_string).collect();
    pool.rows(sql, &[&hashes, &since.as_millis()]).await?.iter().map(|row| parsed(row, "hash")).collect()
}
