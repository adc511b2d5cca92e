//! Schedules and their next ticks.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::schedule::Schedule;
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{STARTS_KEPT, ScheduleRecord, ScheduleStart, Schedules, StartOutcome, StoreError};

use super::readers::{Answer, Unread, at_most, list, one};
use super::rows::moment;
use super::work::{Failure, Performed, Work};
use super::{SqliteArchive, payload_holders};

const COLUMNS: &str = "spec, next_at, last_run";

#[async_trait]
impl Schedules for SqliteArchive {
    async fn advance_schedule(
        &self,
        name: &str,
        seen: Option<Timestamp>,
        next: Option<Timestamp>,
        last_run: Option<RunId>,
    ) -> Result<bool, StoreError> {
        let step = Advance { name: name.to_owned(), seen, next, last_run };
        Ok(matches!(self.write(Work::AdvanceSchedule(step)).await?, Performed::Changed(true)))
    }

    async fn schedule(&self, name: &str) -> Result<Option<ScheduleRecord>, StoreError> {
        let name = name.to_owned();
        self.readers.ask(move |conn| by_name(conn, &name)).await
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError> {
        self.readers.ask(all).await
    }

    async fn note_start(&self, schedule: &str, start: ScheduleStart) -> Result<(), StoreError> {
        self.write(Work::NoteStart(NotedStart { schedule: schedule.to_owned(), start })).await.map(drop)
    }

    async fn schedule_starts(&self, schedule: &str, limit: usize) -> Result<Vec<ScheduleStart>, StoreError> {
        let schedule = schedule.to_owned();
        self.readers.ask(move |conn| starts(conn, &schedule, limit)).await
    }
}

pub(super) fn put(conn: &Connection, record: &ScheduleRecord) -> Result<(), Failure> {
    let holder = payload_holders::schedule_holder(&record.schedule.name);
    payload_holders::let_go(conn, &holder)?;
    if let Payload::Cas(reference) = &record.schedule.input {
        payload_holders::hold(conn, reference.hash, &holder)?;
    }
    conn.prepare_cached(
        "INSERT INTO schedules (name, spec, next_at, last_run) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name) DO UPDATE SET spec = ?2, next_at = ?3, last_run = ?4",
    )?
    .execute(params![
        &*record.schedule.name,
        serde_json::to_string(&record.schedule)?,
        record.next_at.map(Timestamp::as_millis),
        record.last_run.map(|run| run.to_string()),
    ])?;
    Ok(())
}

/// Removes a schedule. Returns whether it existed.
pub(super) fn remove(conn: &Connection, name: &str) -> Result<bool, Failure> {
    payload_holders::let_go(conn, &payload_holders::schedule_holder(name))?;
    conn.prepare_cached("DELETE FROM schedule_starts WHERE schedule = ?1")?.execute([name])?;
    Ok(conn.prepare_cached("DELETE FROM schedules WHERE name = ?1")?.execute([name])? > 0)
}

/// A step to the next tick, taken only if the schedule's next tick is still the one that the caller saw.
#[derive(Debug)]
pub(super) struct Advance {
    name: String,
    seen: Option<Timestamp>,
    next: Option<Timestamp>,
    last_run: Option<RunId>,
}

/// Advances a schedule. Returns whether the step was taken.
pub(super) fn advance(conn: &Connection, step: &Advance) -> Result<bool, Failure> {
    let moved = conn
        .prepare_cached(
            "UPDATE schedules SET next_at = ?3, last_run = coalesce(?4, last_run)
             WHERE name = ?1 AND next_at IS ?2",
        )?
        .execute(params![
            step.name,
            step.seen.map(Timestamp::as_millis),
            step.next.map(Timestamp::as_millis),
            step.last_run.map(|run| run.to_string()),
        ])?;
    Ok(moved > 0)
}

/// The outcome of a tick of a schedule.
#[derive(Debug)]
pub(super) struct NotedStart {
    schedule: String,
    start: ScheduleStart,
}

pub(super) fn note(conn: &Connection, NotedStart { schedule, start }: &NotedStart) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO schedule_starts (schedule, tick, at, tries, started_by, outcome, run, error)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (schedule, tick) DO UPDATE SET at = excluded.at, tries = tries + 1,
             started_by = excluded.started_by, outcome = excluded.outcome, run = excluded.run, error = excluded.error
         WHERE outcome <> 'started'",
    )?
    .execute(params![
        schedule,
        start.tick.as_millis(),
        start.at.as_millis(),
        start.tries,
        start.by.as_deref(),
        start.outcome.as_str(),
        start.outcome.run().map(|run| run.to_string()),
        start.outcome.error(),
    ])?;
    conn.prepare_cached(
        "DELETE FROM schedule_starts WHERE schedule = ?1 AND tick <=
             (SELECT tick FROM schedule_starts WHERE schedule = ?1 ORDER BY tick DESC LIMIT 1 OFFSET ?2)",
    )?
    .execute(params![schedule, at_most(STARTS_KEPT)])?;
    Ok(())
}

fn starts(conn: &Connection, schedule: &str, limit: usize) -> Answer<Vec<ScheduleStart>> {
    let sql = "SELECT tick, at, tries, started_by, outcome, run, error FROM schedule_starts
        WHERE schedule = ?1 ORDER BY tick DESC LIMIT ?2";
    list(conn, sql, params![schedule, at_most(limit)], start)
}

fn start(row: &Row<'_>) -> Answer<ScheduleStart> {
    let damaged = || Unread::Store(StoreError::Corrupt("what became of a tick".to_owned()));
    let (name, run, error): (String, Option<String>, Option<String>) =
        (row.get("outcome")?, row.get("run")?, row.get("error")?);
    let run = run.map(|run| run.parse()).transpose().map_err(|_| damaged())?;
    Ok(ScheduleStart {
        tick: moment(row, "tick")?,
        at: moment(row, "at")?,
        tries: row.get("tries")?,
        by: row.get("started_by")?,
        outcome: StartOutcome::from_stored(&name, run, error.as_deref()).ok_or_else(damaged)?,
    })
}

fn all(conn: &Connection) -> Answer<Vec<ScheduleRecord>> {
    list(conn, &format!("SELECT {COLUMNS} FROM schedules ORDER BY name"), [], record)
}

fn by_name(conn: &Connection, name: &str) -> Answer<Option<ScheduleRecord>> {
    one(conn, &format!("SELECT {COLUMNS} FROM schedules WHERE name = ?1"), [name], record)
}

fn record(row: &Row<'_>) -> Answer<ScheduleRecord> {
    let (spec, next_at, last_run): (String, Option<i64>, Option<String>) =
        (row.get(0)?, row.get(1)?, row.get(2)?);
    let damaged =
        |what: &dyn std::fmt::Display| Unread::Store(StoreError::Corrupt(format!("a schedule: {what}")));
    let schedule: Schedule = serde_json::from_str(&spec).map_err(|error| damaged(&error))?;
    let last_run = last_run.map(|run| run.parse::<RunId>()).transpose().map_err(|error| damaged(&error))?;
    Ok(ScheduleRecord { schedule, next_at: next_at.map(Timestamp::from_millis), last_run })
}
