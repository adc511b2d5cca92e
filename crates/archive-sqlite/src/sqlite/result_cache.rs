//! Cached results.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use switchyard_core::{Payload, Timestamp};
use switchyard_store::{ResultCache, StoreError};

use super::readers::{Answer, one};
use super::rows::json;
use super::work::{Failure, Work};
use super::{SqliteArchive, payload_holders};

#[async_trait]
impl ResultCache for SqliteArchive {
    async fn cached(&self, scope: &str, key: &str, now: Timestamp) -> Result<Option<Payload>, StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.readers.ask(move |conn| find(conn, &scope, &key, now)).await
    }

    async fn cache(
        &self,
        scope: &str,
        key: &str,
        value: Payload,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        let result = CachedResult { scope, key, value, now, expires_at: now.plus(ttl) };
        self.write(Work::Cache(result)).await.map(drop)
    }
}

/// A result to cache.
#[derive(Debug)]
pub(super) struct CachedResult {
    scope: String,
    key: String,
    value: Payload,
    now: Timestamp,
    expires_at: Timestamp,
}

/// Stores a result, and removes expired ones.
pub(super) fn put(conn: &Connection, result: &CachedResult) -> Result<(), Failure> {
    let CachedResult { scope, key, value, now, expires_at } = result;
    payload_holders::hold_until(conn, value, *expires_at)?;
    conn.prepare_cached("DELETE FROM cache WHERE expires_at <= ?1")?.execute([now.as_millis()])?;
    conn.prepare_cached(
        "INSERT INTO cache (scope, key, value, expires_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at",
    )?
    .execute(params![scope, key, serde_json::to_string(value)?, expires_at.as_millis()])?;
    Ok(())
}

fn find(conn: &Connection, scope: &str, key: &str, now: Timestamp) -> Answer<Option<Payload>> {
    let sql = "SELECT key, value FROM cache WHERE scope = ?1 AND key = ?2 AND expires_at > ?3";
    one(conn, sql, params![scope, key, now.as_millis()], |row| json(row, "value"))
}
