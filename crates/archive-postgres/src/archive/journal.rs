//! Events, and the identity of the archive.

use async_trait::async_trait;
use switchyard_core::RunId;
use switchyard_core::run::Event;
use switchyard_store::{Ack, ArchiveMark, Journal, StoreError};

use super::PostgresArchive;
use super::rows::{at_most, moment, shared};
use super::session::event_of;
use crate::pool::LARGE_ANSWER_MAX;

#[async_trait]
impl Journal for PostgresArchive {
    fn append(&self, events: Vec<Event>) -> Ack {
        Box::pin(self.writer.hand_over(events))
    }

    async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let sql = "SELECT run, seq, at, body, checksum FROM events WHERE run = $1 AND seq > $2
            ORDER BY seq LIMIT $3";
        let pool = self.pool.within(LARGE_ANSWER_MAX);
        let rows = pool.rows(sql, &[&run.to_string(), &after, &at_most(limit)]).await?;
        rows.iter().map(event_of).collect()
    }

    async fn mark(&self) -> Result<ArchiveMark, StoreError> {
        let target = self.pool.target();
        let location = format!("{target}, schema `{}`", target.schema()).into();
        let row = self.pool.row("SELECT id, position FROM archive WHERE no = 1", &[]).await?;
        let row =
            row.ok_or_else(|| StoreError::Corrupt(format!("{location} does not say which archive it is")))?;
        Ok(ArchiveMark { id: shared(&row, "id"), position: moment(&row, "position"), location })
    }
}
