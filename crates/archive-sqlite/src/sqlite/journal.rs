//! What the writer does inside a transaction.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Statement, params};
use switchyard_core::run::{Event, EventKind, Refusal};
use switchyard_core::{Hash, Payload, RunId, Timestamp};
use switchyard_store::{
    DeadLetter, Mutation, MutationOutcome, OperationRequest, Retention, StoreError, event_checksum,
};

use super::mark::Marker;
use super::{dead, operations, project, read, retain, schedules};

/// Something to make durable.
#[derive(Debug)]
pub(super) enum Work {
    Append(Vec<Event>),
    Definition { hash: Hash, canonical: Arc<str> },
    Mutation { mutation: Box<Mutation>, operation: Option<OperationRequest> },
    ForgetOperations { before: Timestamp, limit: usize },
    Cache { scope: String, key: String, value: Payload, now: Timestamp, expires_at: Timestamp },
    AdvanceSchedule(schedules::Advance),
    Retain { policy: Retention, now: Timestamp, limit: usize },
    Bury(Box<DeadLetter>),
}

impl Work {
    /// How much of a transaction it fills, in events.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Append(events) => events.len(),
            Self::Definition { .. }
            | Self::Mutation { .. }
            | Self::ForgetOperations { .. }
            | Self::Cache { .. }
            | Self::AdvanceSchedule(_)
            | Self::Bury(_) => 1,
            // Other work should not wait for what is behind it, too.
            Self::Retain { .. } => usize::MAX,
        }
    }
}

#[derive(Debug)]
pub(super) enum Answer {
    Done,
    /// A refusal concerns its caller alone: it has changed nothing, and the rest of the transaction goes on.
    Mutated(Result<MutationOutcome, Refusal>),
    /// Whether there was anything to change.
    Changed(bool),
    Removed(usize),
}

impl Answer {
    /// How many were removed by work that removes.
    pub(super) fn removed(self) -> usize {
        match self {
            Self::Removed(count) => count,
            Self::Done | Self::Mutated(_) | Self::Changed(_) => 0,
        }
    }
}

/// Why a transaction cannot be finished.
#[derive(Debug)]
pub(super) enum Failure {
    /// The disk or the file, before anything was committed.
    Sqlite(rusqlite::Error),
    /// The disk or the file during COMMIT: what reached the disk shows when the file is opened again.
    Commit(rusqlite::Error),
    /// What we were told does not fit what is stored. Nothing is wrong with the file.
    Refused(StoreError),
}

impl Failure {
    /// A bug above us.
    pub(super) fn contradiction(what: String) -> Self {
        Self::Refused(StoreError::Corrupt(what))
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => Self::contradiction(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

impl From<read::Unread> for Failure {
    fn from(unread: read::Unread) -> Self {
        match unread {
            read::Unread::Sqlite(e) => Self::Sqlite(e),
            read::Unread::Store(e) => Self::Refused(e),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::contradiction(format!("an event cannot be written as JSON: {error}"))
    }
}

#[derive(Clone, Copy)]
struct RunRow {
    no: i64,
    last_seq: u64,
}

pub(super) struct Journal<'c> {
    conn: &'c Connection,
    insert_event: Statement<'c>,
    /// Runs that have not ended, so that an event costs no lookup.
    active: HashMap<RunId, RunRow>,
    /// Reused for every body.
    body: Vec<u8>,
    /// The number of the last event that is committed.
    last_no: i64,
    marker: Marker,
}

impl<'c> Journal<'c> {
    pub(super) fn open(conn: &'c Connection) -> rusqlite::Result<Self> {
        let last_no = conn.query_row("SELECT coalesce(max(no), 0) FROM events", [], |row| row.get(0))?;
        let insert_event = conn.prepare(
            "INSERT INTO events (run_no, seq, at, kind, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        Ok(Self {
            conn,
            insert_event,
            active: HashMap::new(),
            body: Vec::new(),
            last_no,
            marker: Marker::default(),
        })
    }

    pub(super) fn last_no(&self) -> i64 {
        self.last_no
    }

    /// All of it or nothing, durable at return.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let before = self.last_no;
        let done = work(self).and_then(|done| {
            self.marker.write_if_due(self.conn)?;
            self.conn.prepare_cached("COMMIT")?.execute([]).map_err(Failure::Commit)?;
            Ok(done)
        });
        self.marker.ended(done.is_ok());
        if done.is_err() {
            self.last_no = before;
            // What is remembered of runs was rolled back.
            self.active.clear();
            // SQLite has rolled back by itself if the disk was full; then this says so, and that is all right.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        done
    }

    pub(super) fn perform(&mut self, work: &Work) -> Result<Answer, Failure> {
        match work {
            Work::Append(events) => {
                for event in events {
                    self.append(event)?;
                }
            }
            Work::Definition { hash, canonical } => self.put_definition(*hash, canonical)?,
            Work::Mutation { mutation, operation } => {
                return operations::mutate(self.conn, mutation, operation.as_ref()).map(Answer::Mutated);
            }
            Work::ForgetOperations { before, limit } => {
                return operations::forget(self.conn, *before, *limit).map(Answer::Removed);
            }
            Work::Cache { scope, key, value, now, expires_at } => {
                self.cache(scope, key, value, *now, *expires_at)?;
            }
            Work::Retain { policy, now, limit } => {
                // What is remembered of runs may be about to go.
                self.active.clear();
                return retain::pass(self.conn, policy, *now, *limit).map(Answer::Removed);
            }
            Work::Bury(letter) => dead::bury(self.conn, letter)?,
            Work::AdvanceSchedule(step) => return schedules::advance(self.conn, step).map(Answer::Changed),
        }
        Ok(Answer::Done)
    }

    fn append(&mut self, event: &Event) -> Result<(), Failure> {
        let row = match self.active.get(&event.run) {
            Some(row) => Some(*row),
            None => self.look_up(event.run)?,
        };
        let last_seq = row.map_or(0, |row| row.last_seq);
        if event.seq <= last_seq {
            return self.compare(event);
        }
        if event.seq != last_seq + 1 {
            return Err(Failure::contradiction(format!(
                "event {} of {} came after event {last_seq}",
                event.seq, event.run
            )));
        }
        let no = match (row, &event.kind) {
            (None, EventKind::RunAccepted(accepted)) => project::accept(self.conn, event, accepted)?,
            (Some(row), kind) if !matches!(kind, EventKind::RunAccepted(_)) => row.no,
            _ => {
                let what = format!("{} is event {} of {}", event.kind.name(), event.seq, event.run);
                return Err(Failure::contradiction(what));
            }
        };
        self.insert(no, event)?;
        self.marker.appended(event.at);
        project::follow(self.conn, no, event)?;
        self.hold_payloads(event)?;
        match event.kind {
            EventKind::RunEnded { .. } => self.active.remove(&event.run),
            _ => self.active.insert(event.run, RunRow { no, last_seq: event.seq }),
        };
        Ok(())
    }

    fn hold_payloads(&self, event: &Event) -> rusqlite::Result<()> {
        let mut held = Ok(());
        event.kind.for_each_payload(&mut |payload| {
            if held.is_ok() && matches!(payload, Payload::Cas(_)) {
                held = retain::hold(self.conn, payload, &event.run.to_string());
            }
        });
        held
    }

    /// An event that is there already says the same, or the history that it belongs to is another one.
    fn compare(&self, event: &Event) -> Result<(), Failure> {
        let stored = read::events(self.conn, event.run, event.seq - 1, 1)?;
        if stored.first() == Some(event) {
            return Ok(());
        }
        Err(Failure::Refused(StoreError::Diverged { run: event.run, seq: event.seq }))
    }

    fn insert(&mut self, run_no: i64, event: &Event) -> Result<(), Failure> {
        self.body.clear();
        serde_json::to_writer(&mut self.body, &event.kind)?;
        // Text and not a blob, so that people and SQLite's JSON functions can read it.
        let body = std::str::from_utf8(&self.body)
            .map_err(|e| Failure::contradiction(format!("an event is not UTF-8: {e}")))?;
        self.last_no = self.insert_event.insert(params![
            run_no,
            event.seq.cast_signed(),
            event.at.as_millis(),
            event.kind.name(),
            body,
            event_checksum(event.run, event.seq, event.at, &self.body),
        ])?;
        Ok(())
    }

    fn look_up(&self, run: RunId) -> rusqlite::Result<Option<RunRow>> {
        self.conn
            .prepare_cached(
                "SELECT no, (SELECT coalesce(max(seq), 0) FROM events WHERE run_no = runs.no)
                 FROM runs WHERE id = ?1",
            )?
            .query_row([run.to_string()], |row| {
                Ok(RunRow { no: row.get(0)?, last_seq: row.get::<_, i64>(1)?.cast_unsigned() })
            })
            .optional()
    }

    fn put_definition(&self, hash: Hash, canonical: &str) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("INSERT INTO definitions (hash, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute(params![hash.to_string(), canonical])?;
        Ok(())
    }

    fn cache(
        &self,
        scope: &str,
        key: &str,
        value: &Payload,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), Failure> {
        retain::hold_until(self.conn, value, expires_at)?;
        self.conn.prepare_cached("DELETE FROM cache WHERE expires_at <= ?1")?.execute([now.as_millis()])?;
        self.conn
            .prepare_cached(
                "INSERT INTO cache (scope, key, value, expires_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at",
            )?
            .execute(params![scope, key, serde_json::to_string(value)?, expires_at.as_millis()])?;
        Ok(())
    }
}
