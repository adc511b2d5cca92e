//! The CAS in Postgres: a row for each payload.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use switchyard_core::{CasRef, Hash};
use switchyard_store::{Cas, StoreError};

use crate::pool::{BULK_ANSWER_MAX, LARGE_ANSWER_MAX, Pool};
use crate::{Target, migrations};

/// Payloads in the table `payloads`. For installations with few or small payloads: each of them passes through
/// Postgres's log and backups.
#[derive(Debug, Clone)]
pub struct PostgresCas {
    pool: Pool,
}

impl PostgresCas {
    const CONNECTIONS: usize = 4;

    /// Opens a CAS that [`migrate`](crate::migrate) has created.
    pub async fn open(target: Target) -> Result<Self, StoreError> {
        migrations::check_current(&target).await?;
        Ok(Self { pool: Pool::new(target, Self::CONNECTIONS, LARGE_ANSWER_MAX)? })
    }
}

#[async_trait]
impl Cas for PostgresCas {
    async fn put(&self, content: Bytes) -> Result<CasRef, StoreError> {
        let reference = CasRef { hash: Hash::of(&content), bytes: content.len() as u64 };
        let hash = reference.hash.to_string();
        // An existing payload gets a new age, and is not sent a second time.
        let renew = "UPDATE payloads SET put_at = now() WHERE hash = $1";
        if self.pool.change(renew, &[&hash]).await? == 0 {
            let keep = "INSERT INTO payloads (hash, content) VALUES ($1, $2)
                ON CONFLICT (hash) DO UPDATE SET put_at = now()";
            self.pool.change(keep, &[&hash, &&*content]).await?;
        }
        Ok(reference)
    }

    async fn get(&self, reference: CasRef) -> Result<Bytes, StoreError> {
        let sql = "SELECT content FROM payloads WHERE hash = $1";
        let row = self.pool.row(sql, &[&reference.hash.to_string()]).await?;
        let row = row.ok_or_else(|| StoreError::unknown("payload", reference))?;
        let content = Bytes::copy_from_slice(row.get::<_, &[u8]>("content"));
        if Hash::of(&content) != reference.hash {
            let message = format!("the row in {} is not the content of {reference}", self.pool.target());
            return Err(StoreError::Corrupt(message));
        }
        Ok(content)
    }

    async fn aged(
        &self,
        min_age: Duration,
        after: Option<Hash>,
        limit: usize,
    ) -> Result<Vec<Hash>, StoreError> {
        let sql = "SELECT hash FROM payloads
            WHERE put_at <= now() - make_interval(secs => $1) AND hash > $2 ORDER BY hash LIMIT $3";
        let after = after.map(|hash| hash.to_string()).unwrap_or_default();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows =
            self.pool.within(BULK_ANSWER_MAX).rows(sql, &[&min_age.as_secs_f64(), &after, &limit]).await?;
        let read = |hash: &str| {
            hash.parse().map_err(|_| StoreError::Corrupt(format!("`{hash}` is the name of a payload")))
        };
        rows.iter().map(|row| read(row.get("hash"))).collect()
    }

    async fn remove(&self, hash: Hash, min_age: Duration) -> Result<bool, StoreError> {
        let sql = "DELETE FROM payloads WHERE hash = $1 AND put_at <= now() - make_interval(secs => $2)";
        Ok(self.pool.change(sql, &[&hash.to_string(), &min_age.as_secs_f64()]).await? > 0)
    }
}
