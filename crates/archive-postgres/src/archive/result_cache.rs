//! Cached results.

use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::{Payload, Timestamp};
use switchyard_store::{ResultCache, StoreError};

use super::rows::{json, to_json};
use super::{PostgresArchive, payload_holders};
use crate::text;

#[async_trait]
impl ResultCache for PostgresArchive {
    async fn cached(&self, scope: &str, key: &str, now: Timestamp) -> Result<Option<Payload>, StoreError> {
        let sql = "SELECT key, value FROM cache WHERE scope = $1 AND key = $2 AND expires_at > $3";
        let row = self.pool.row(sql, &[&text::stored(scope), &text::stored(key), &now.as_millis()]).await?;
        row.map(|row| json(&row, "value")).transpose()
    }

    async fn cache(
        &self,
        scope: &str,
        key: &str,
        value: Payload,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let (scope, key) = (text::stored(scope), text::stored(key));
        let expires_at = now.plus(ttl);
        payload_holders::hold_until(&self.pool, &value, expires_at).await?;
        let remember = "INSERT INTO cache (scope, key, value, expires_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at";
        self.pool.change(remember, &[&scope, &key, &to_json(&value), &expires_at.as_millis()]).await?;
        // Rows that another process has locked are skipped.
        let forget = "DELETE FROM cache WHERE (scope, key) IN
            (SELECT scope, key FROM cache WHERE expires_at <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)";
        self.pool.change(forget, &[&now.as_millis()]).await.map(drop)
    }
}
