//! Removes runs that ended long ago.

use async_trait::async_trait;
use switchyard_core::Timestamp;
use switchyard_store::{Retention, RetentionPolicy, StoreError};

use super::PostgresArchive;
use super::rows::{at_most, millis};
use crate::pool::BULK_ANSWER_MAX;

/// The statement of a retention pass: only one, so that a run is removed whole or not at all. `live` are runs that
/// have not ended and the runs that started them: a parent is kept as long as one of its children has not ended.
/// Locked rows are left for the next pass.
fn remove_runs() -> String {
    format!(
        "WITH RECURSIVE
    live (id, parent) AS (
        SELECT id, parent FROM runs WHERE ended_at IS NULL
        UNION SELECT runs.id, runs.parent FROM runs JOIN live ON runs.id = live.parent),
    oldest AS (
        SELECT id FROM runs
        WHERE ended_at IS NOT NULL AND parent IS NULL AND id NOT IN (SELECT id FROM live)
            AND (ended_at <= $1 OR (ended_at, id) <= (
                SELECT ended_at, id FROM runs WHERE ended_at IS NOT NULL AND parent IS NULL
                ORDER BY ended_at DESC, id DESC OFFSET $4 LIMIT 1))
        ORDER BY ended_at, id LIMIT $3 FOR UPDATE SKIP LOCKED),
    doomed (id) AS (
        SELECT id FROM oldest
        UNION SELECT runs.id FROM runs JOIN doomed ON runs.parent = doomed.id),
    {REMOVE_DOOMED}
    SELECT count(*) FROM removed WHERE parent IS NULL"
    )
}

/// Removes the runs of `doomed` with everything that belongs to them. `$2` is now.
pub(super) const REMOVE_DOOMED: &str =
    "no_events AS (DELETE FROM events USING doomed WHERE events.run = doomed.id),
    no_operations AS (DELETE FROM run_operations USING doomed WHERE run_operations.run = doomed.id),
    no_labels AS (DELETE FROM run_labels USING doomed WHERE run_labels.run = doomed.id),
    no_approvals AS (DELETE FROM approvals USING doomed WHERE approvals.run = doomed.id),
    no_dead_letters AS (DELETE FROM dead_letters USING doomed WHERE dead_letters.run = doomed.id),
    released AS (UPDATE payload_refs SET released_at = $2 FROM doomed WHERE holder = doomed.id),
    removed AS (DELETE FROM runs USING doomed WHERE runs.id = doomed.id RETURNING runs.parent)";

#[async_trait]
impl Retention for PostgresArchive {
    async fn retain(
        &self,
        policy: &RetentionPolicy,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let forget = "DELETE FROM payload_refs WHERE released_at <= $1";
        let pool = self.pool.within(BULK_ANSWER_MAX);
        pool.change(forget, &[&now.minus(policy.payload_grace).as_millis()]).await?;
        let ended_by = policy.keep_for.map(|age| now.minus(age));
        let keep = policy.keep_runs.map_or(i64::MAX, |runs| i64::try_from(runs).unwrap_or(i64::MAX));
        // An age compared with NULL is never too old; past the largest offset there are never too many runs.
        let (ended_by, limit, now) = (millis(ended_by), at_most(limit), now.as_millis());
        let row = pool.row(&remove_runs(), &[&ended_by, &now, &limit, &keep]).await?;
        Ok(row.map_or(0, |row| usize::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
    }
}
