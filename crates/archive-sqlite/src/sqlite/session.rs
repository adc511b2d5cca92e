//! The connection of the writer, and its transactions.

use rusqlite::Connection;
use switchyard_store::Mutation;

use super::append::Appender;
use super::mark::Marker;
use super::work::{Failure, Performed, Work};
use super::{bulk, dead_letters, definitions, operations, result_cache, retention, schedules};

pub(super) struct Session<'c> {
    conn: &'c Connection,
    appender: Appender<'c>,
    marker: Marker,
}

impl<'c> Session<'c> {
    pub(super) fn open(conn: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self { conn, appender: Appender::new(conn)?, marker: Marker::default() })
    }

    /// The number of the last committed event.
    pub(super) fn last_no(&self) -> i64 {
        self.appender.last_no()
    }

    /// Runs `work` in a transaction, which is durable when this returns. An error rolls it back.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let before = self.last_no();
        let done = work(self).and_then(|done| {
            self.marker.write_if_due(self.conn)?;
            self.conn.prepare_cached("COMMIT")?.execute([]).map_err(Failure::Commit)?;
            Ok(done)
        });
        self.marker.ended(done.is_ok());
        if done.is_err() {
            self.appender.rolled_back(before);
            // If the disk was full, SQLite has already rolled back, and this statement fails harmlessly.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        done
    }

    pub(super) fn perform(&mut self, work: &Work) -> Result<Performed, Failure> {
        match work {
            Work::Append(events) => {
                for event in events {
                    self.appender.append(event, &mut self.marker)?;
                }
            }
            Work::Definition { hash, canonical } => definitions::put(self.conn, *hash, canonical)?,
            Work::Mutation { mutation, operation } => {
                if matches!(**mutation, Mutation::DeleteRun(_)) {
                    self.appender.forget_runs();
                }
                return operations::mutate(self.conn, mutation, operation.as_ref()).map(Performed::Mutated);
            }
            Work::ForgetOperations { before, limit } => {
                return operations::forget(self.conn, *before, *limit).map(Performed::Removed);
            }
            Work::Cache(result) => result_cache::put(self.conn, result)?,
            Work::Retain { policy, now, limit } => {
                self.appender.forget_runs();
                return retention::pass(self.conn, policy, *now, *limit).map(Performed::Removed);
            }
            Work::RecordBulk(progress) => bulk::record_progress(self.conn, progress)?,
            Work::Bury(letter) => dead_letters::bury(self.conn, letter)?,
            Work::AdvanceSchedule(step) => {
                return schedules::advance(self.conn, step).map(Performed::Changed);
            }
            Work::NoteStart(noted) => schedules::note(self.conn, noted)?,
        }
        Ok(Performed::Done)
    }
}
