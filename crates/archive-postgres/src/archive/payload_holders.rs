//! Holders: the runs, schedules and cached results that refer to payloads of the CAS.

use std::collections::HashSet;

use async_trait::async_trait;
use switchyard_core::{Hash, Payload, Timestamp};
use switchyard_store::{PayloadHolders, StoreError};

use super::PostgresArchive;
use super::rows::parsed;
use crate::pool::Pool;

#[async_trait]
impl PayloadHolders for PostgresArchive {
    async fn held_payloads(&self, of: &[Hash], since: Timestamp) -> Result<HashSet<Hash>, StoreError> {
        let sql = "SELECT DISTINCT hash FROM payload_refs
            WHERE hash = ANY($1::text[]) AND (released_at IS NULL OR released_at > $2)";
        let hashes: Vec<String> = of.iter().map(ToString::to_string).collect();
        let rows = self.pool.rows(sql, &[&hashes, &since.as_millis()]).await?;
        rows.iter().map(|row| parsed(row, "hash")).collect()
    }
}

/// Records that a cached result refers to a payload until the result expires.
pub(super) async fn hold_until(pool: &Pool, payload: &Payload, until: Timestamp) -> Result<(), StoreError> {
    let Payload::Cas(reference) = payload else { return Ok(()) };
    let hold = "INSERT INTO payload_refs (hash, holder, released_at) VALUES ($1, 'cache', $2)
        ON CONFLICT (hash, holder) DO UPDATE
        SET released_at = greatest(payload_refs.released_at, excluded.released_at)";
    pool.change(hold, &[&reference.hash.to_string(), &until.as_millis()]).await.map(drop)
}
