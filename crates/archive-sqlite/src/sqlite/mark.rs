//! The id of an archive and its position: the row of the table `archive`.

use std::sync::Arc;
use std::time::Instant;

use rusqlite::Connection;
use switchyard_core::Timestamp;
use switchyard_store::{ArchiveMark, MARK_EVERY};

use super::readers::Answer;
use super::rows::moment;

pub(super) fn read(conn: &Connection, location: Arc<str>) -> Answer<ArchiveMark> {
    let mut find = conn.prepare_cached("SELECT id, position FROM archive")?;
    let mut rows = find.query([])?;
    let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(ArchiveMark { id: row.get("id")?, location, position: moment(row, "position")? })
}

/// Writes the position from time to time, in a transaction that appends events anyway.
#[derive(Debug, Default)]
pub(super) struct Marker {
    /// The time of the newest event in the current transaction.
    newest: Option<Timestamp>,
    /// When the current transaction wrote the position, if it did.
    written: Option<Instant>,
    /// When a committed transaction last wrote the position.
    committed: Option<Instant>,
}

impl Marker {
    pub(super) fn appended(&mut self, at: Timestamp) {
        self.newest = self.newest.max(Some(at));
    }

    /// Writes the position if it is due. Called before a commit.
    pub(super) fn write_if_due(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let due = self.committed.is_none_or(|at| at.elapsed() >= MARK_EVERY);
        if let Some(newest) = self.newest.filter(|_| due) {
            conn.prepare_cached("UPDATE archive SET position = max(position + 1, ?1)")?
                .execute([newest.as_millis()])?;
            self.written = Some(Instant::now());
        }
        Ok(())
    }

    /// Called after a transaction, committed or rolled back.
    pub(super) fn ended(&mut self, committed: bool) {
        self.newest = None;
        self.committed = self.written.take().filter(|_| committed).or(self.committed);
    }
}
