//! Events, and the identity of the archive.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::RunId;
use switchyard_core::run::Event;
use switchyard_store::{Ack, ArchiveMark, Journal, StoreError, verify_event};

use super::readers::{Answer, Unread, at_most, list};
use super::rows::{damaged, moment};
use super::work::Work;
use super::{SqliteArchive, mark};

#[async_trait]
impl Journal for SqliteArchive {
    fn append(&self, events: Vec<Event>) -> Ack {
        let handed_over = self.writer().map(|writer| writer.hand_over(Work::Append(events)));
        Box::pin(async move { handed_over?.await.map(drop) })
    }

    async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.readers.ask(move |conn| events(conn, run, after, limit)).await
    }

    async fn mark(&self) -> Result<ArchiveMark, StoreError> {
        let location: Arc<str> = self.readers.path().display().to_string().into();
        self.readers.ask(move |conn| mark::read(conn, location)).await
    }
}

pub(super) fn events(conn: &Connection, run: RunId, after: u64, limit: usize) -> Answer<Vec<Event>> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    list(
        conn,
        "SELECT 'event ' || seq || ' of ' || ?1, seq, at, body, checksum FROM events
         WHERE run_no = (SELECT no FROM runs WHERE id = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3",
        params![run.to_string(), after, at_most(limit)],
        |row| event(run, row),
    )
}

fn event(run: RunId, row: &Row<'_>) -> Answer<Event> {
    let (seq, at) = (row.get::<_, i64>("seq")?.cast_unsigned(), moment(row, "at")?);
    // Read as bytes: a damaged body may not be text any more.
    let body = row.get_ref("body")?.as_bytes().unwrap_or_default();
    verify_event(row.get("checksum")?, run, seq, at, body).map_err(Unread::Store)?;
    let kind = serde_json::from_slice(body).map_err(|_| damaged(row, "body"))?;
    Ok(Event { run, seq, at, kind })
}
