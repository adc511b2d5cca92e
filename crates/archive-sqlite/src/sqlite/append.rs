//! Appends events, and applies the row changes that follow from them.

use std::collections::HashMap;

use rusqlite::{Connection, Statement, params};
use switchyard_core::RunId;
use switchyard_core::run::{Event, RunStatus};
use switchyard_store::projection::{Place, RowChange, RunRow, place, project};
use switchyard_store::{StoreError, event_checksum};

use super::mark::Marker;
use super::readers::one;
use super::rows::parsed;
use super::work::Failure;
use super::{approvals, dead_letters, journal, payload_holders, run_index};

/// A run in the table `runs`.
#[derive(Clone, Copy)]
struct StoredRun {
    /// The row number, assigned when the run is accepted.
    no: i64,
    row: RunRow,
}

impl StoredRun {
    const NEW: Self = Self { no: 0, row: RunRow::NEW };
}

pub(super) struct Appender<'c> {
    conn: &'c Connection,
    insert_event: Statement<'c>,
    /// Runs that have not ended, so that an event costs no lookup.
    active: HashMap<RunId, StoredRun>,
    /// Buffer for event bodies, reused.
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

    /// Resets the state after a rollback. `last_no` is the last event before the transaction.
    pub(super) fn rolled_back(&mut self, last_no: i64) {
        self.last_no = last_no;
        self.forget_runs();
    }

    /// Clears the cached runs. Called before runs are removed.
    pub(super) fn forget_runs(&mut self) {
        self.active.clear();
    }

    /// Appends an event and its row changes; `marker` gets the time of an event that is new.
    pub(super) fn append(&mut self, event: &Event, marker: &mut Marker) -> Result<(), Failure> {
        let mut run = match self.active.get(&event.run) {
            Some(run) => *run,
            None => self.look_up(event.run)?.unwrap_or(StoredRun::NEW),
        };
        if place(run.row.last_seq, event)? == Place::Taken {
            return self.compare(event);
        }
        for change in project(&mut run.row, event) {
            self.execute(event.run, &mut run.no, change)?;
        }
        self.insert(run.no, event)?;
        marker.appended(event.at);
        match run.row.status.is_terminal() {
            true => self.active.remove(&event.run),
            false => self.active.insert(event.run, run),
        };
        Ok(())
    }

    /// Executes one row change. `no` is the number of the run; the acceptance sets it.
    fn execute(&self, run: RunId, no: &mut i64, change: RowChange<'_>) -> Result<(), Failure> {
        use RowChange as C;
        let conn = self.conn;
        match change {
            C::RunAccepted { accepted, at, status } => {
                *no = run_index::insert(conn, run, accepted, at, status)?;
                Ok(())
            }
            C::RunStatus { status, queued } => run_index::set_status(conn, *no, status, queued),
            C::RunEnded { status, at, error } => run_index::set_end(conn, *no, status, Some(at), error),
            C::RunReopened => run_index::set_end(conn, *no, RunStatus::Running, None, None),
            C::OperationApplied { seq, operation } => run_index::add_operation(conn, *no, seq, operation),
            C::ApprovalRequested { node, request, at } => approvals::request(conn, run, node, request, at),
            C::ApprovalDecided { approval, status, at, by, comment } => {
                approvals::decide(conn, approval, status, at, by, comment)
            }
            C::ApprovalsClosed { node, status } => approvals::close(conn, run, node, status),
            C::DeadLetterBuried(letter) => dead_letters::bury(conn, &letter),
            C::DeadLettersRevived { nodes } => dead_letters::revive(conn, run, nodes),
            C::PayloadHeld(hash) => Ok(payload_holders::hold(conn, hash, &run.to_string())?),
        }
    }

    /// Compares an event with the stored one of the same seq. If they differ, the histories differ.
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

    fn look_up(&self, run: RunId) -> Result<Option<StoredRun>, Failure> {
        let sql = "SELECT id, no, status, queued,
                       (SELECT coalesce(max(seq), 0) FROM events WHERE run_no = runs.no) AS last_seq
                   FROM runs WHERE id = ?1";
        let found = one(self.conn, sql, [run.to_string()], |row| {
            let last_seq = row.get::<_, i64>("last_seq")?.cast_unsigned();
            let row_of_run = RunRow { last_seq, status: parsed(row, "status")?, queued: row.get("queued")? };
            Ok(StoredRun { no: row.get("no")?, row: row_of_run })
        });
        Ok(found?)
    }
}
