//! Schedules and their next ticks.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::schedule::Schedule;
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{ScheduleRecord, Schedules, StoreError};

use super::readers::{Answer, Unread, list, one};
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

/// Whether there was one.
pub(super) fn remove(conn: &Connection, name: &str) -> Result<bool, Failure> {
    payload_holders::let_go(conn, &payload_holders::schedule_holder(name))?;
    Ok(conn.prepare_cached("DELETE FROM schedules WHERE name = ?1")?.execute([name])? > 0)
}

/// A step to the next tick, taken only if the schedule still stands at the one that was seen.
#[derive(Debug)]
pub(super) struct Advance {
    name: String,
    seen: Option<Timestamp>,
    next: Option<Timestamp>,
    last_run: Option<RunId>,
}

/// Whether it was taken.
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
