//! Events on their way into the file, with the rows that follow from them.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Statement, params};
use switchyard_core::run::{Event, EventKind};
use switchyard_core::{Payload, RunId};
use switchyard_store::{StoreError, event_checksum};

use super::mark::Marker;
use super::work::Failure;
use super::{journal, payload_holders, project};

#[derive(Clone, Copy)]
struct RunRow {
    no: i64,
    last_seq: u64,
}

pub(super) struct Appender<'c> {
    conn: &'c Connection,
    insert_event: Statement<'c>,
    /// Runs that have not ended, so that an event costs no lookup.
    active: HashMap<RunId, RunRow>,
    /// Reused for every body.
    body: Vec<u8>,
    /// The number of the last event.
    last_no: i64,
}

impl<'c> Appender<'c> {
    pub(super) fn new(conn: &'c Connection) -> rusqlite::Result<Self> {
        let last_no = conn.query_row("SELECT coalesce(max(no), 0) FROM events", [], |row| row.get(0))?;
        let insert_event = conn.prepare(
            "INSERT INTO events (run_no, seq, at, kind, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        Ok(Self { conn, insert_event, active: HashMap::new(), body: Vec::new(), last_no })
    }

    pub(super) fn last_no(&self) -> i64 {
        self.last_no
    }

    /// The transaction under way came to nothing; this was the last event before it.
    pub(super) fn rolled_back(&mut self, last_no: i64) {
        self.last_no = last_no;
        self.forget_runs();
    }

    /// Called before runs are removed.
    pub(super) fn forget_runs(&mut self) {
        self.active.clear();
    }

    /// Also tells `marker` about an event that is new.
    pub(super) fn append(&mut self, event: &Event, marker: &mut Marker) -> Result<(), Failure> {
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
        marker.appended(event.at);
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
                held = payload_holders::hold(self.conn, payload, &event.run.to_string());
            }
        });
        held
    }

    /// An event that is there already says the same, or the history that it belongs to is another one.
    fn compare(&self, event: &Event) -> Result<(), Failure> {
        let stored = journal::events(self.conn, event.run, event.seq - 1, 1)?;
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
}
