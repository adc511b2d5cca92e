//! Schedules and their next ticks.

use async_trait::async_trait;
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{STARTS_KEPT, ScheduleRecord, ScheduleStart, Schedules, StartOutcome, StoreError};
use tokio_postgres::{Error, Row, Transaction};

use super::PostgresArchive;
use super::rows::{at_most, damaged, json, maybe_moment, maybe_shared, millis, moment, to_json};
use crate::text;

const COLUMNS: &str = "name, spec, next_at, last_run";

#[async_trait]
impl Schedules for PostgresArchive {
    async fn advance_schedule(
        &self,
        name: &str,
        seen: Option<Timestamp>,
        next: Option<Timestamp>,
        last_run: Option<RunId>,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE schedules SET next_at = $3, last_run = coalesce($4, last_run)
            WHERE name = $1 AND next_at IS NOT DISTINCT FROM $2";
        let (seen, next, last_run) = (millis(seen), millis(next), last_run.map(|run| run.to_string()));
        let moved = self.pool.change(sql, &[&text::stored(name), &seen, &next, &last_run]).await?;
        Ok(moved > 0)
    }

    async fn schedule(&self, name: &str) -> Result<Option<ScheduleRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM schedules WHERE name = $1");
        self.pool.row(&sql, &[&text::stored(name)]).await?.as_ref().map(record).transpose()
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM schedules ORDER BY name");
        self.pool.rows(&sql, &[]).await?.iter().map(record).collect()
    }

    async fn note_start(&self, schedule: &str, start: ScheduleStart) -> Result<(), StoreError> {
        let schedule = text::stored(schedule);
        let note = "INSERT INTO schedule_starts AS noted (schedule, tick, at, tries, started_by, outcome, run, error)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (schedule, tick) DO UPDATE SET at = excluded.at, tries = noted.tries + 1,
                started_by = excluded.started_by, outcome = excluded.outcome, run = excluded.run,
                error = excluded.error
            WHERE noted.outcome <> 'started'";
        let (tick, at, tries) = (start.tick.as_millis(), start.at.as_millis(), start.tries.cast_signed());
        let (by, outcome) = (start.by.as_deref().map(text::stored), start.outcome.as_str());
        let run = start.outcome.run().map(|run| run.to_string());
        let error = start.outcome.error().map(text::stored);
        self.pool.change(note, &[&schedule, &tick, &at, &tries, &by, &outcome, &run, &error]).await?;
        let keep = "DELETE FROM schedule_starts WHERE schedule = $1 AND tick <=
            (SELECT tick FROM schedule_starts WHERE schedule = $1 ORDER BY tick DESC LIMIT 1 OFFSET $2)";
        self.pool.change(keep, &[&schedule, &at_most(STARTS_KEPT)]).await.map(drop)
    }

    async fn schedule_starts(&self, schedule: &str, limit: usize) -> Result<Vec<ScheduleStart>, StoreError> {
        let sql = "SELECT tick, at, tries, started_by, outcome, run, error FROM schedule_starts
            WHERE schedule = $1 ORDER BY tick DESC LIMIT $2";
        let rows = self.pool.rows(sql, &[&text::stored(schedule), &at_most(limit)]).await?;
        rows.iter().map(|row| start(schedule, row)).collect()
    }
}

pub(super) async fn put(transaction: &Transaction<'_>, record: &ScheduleRecord) -> Result<(), Error> {
    let name = &record.schedule.name;
    // The same statement updates the reference to the schedule's input in the CAS.
    let put = "WITH let_go AS (DELETE FROM payload_refs WHERE holder = $5 AND hash IS DISTINCT FROM $6::text),
        held AS (INSERT INTO payload_refs (hash, holder) SELECT $6, $5 WHERE $6 IS NOT NULL ON CONFLICT DO NOTHING)
        INSERT INTO schedules (name, spec, next_at, last_run) VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO UPDATE SET spec = excluded.spec, next_at = excluded.next_at,
            last_run = excluded.last_run";
    let last_run = record.last_run.map(|run| run.to_string());
    let spec = to_json(&record.schedule);
    let input = match &record.schedule.input {
        Payload::Cas(reference) => Some(reference.hash.to_string()),
        Payload::Json(_) => None,
    };
    let (stored, next_at, holder) = (text::stored(name), millis(record.next_at), holder(name));
    transaction.execute(put, &[&stored, &spec, &next_at, &last_run, &holder, &input]).await.map(drop)
}

/// Removes a schedule. Returns whether it existed.
pub(super) async fn remove(transaction: &Transaction<'_>, name: &str) -> Result<bool, Error> {
    let remove = "WITH let_go AS (DELETE FROM payload_refs WHERE holder = $2),
        starts AS (DELETE FROM schedule_starts WHERE schedule = $1) DELETE FROM schedules WHERE name = $1";
    Ok(transaction.execute(remove, &[&text::stored(name), &holder(name)]).await? > 0)
}

/// The holder name of a schedule's input.
fn holder(name: &str) -> String {
    format!("schedule/{}", text::stored(name))
}

fn start(schedule: &str, row: &Row) -> Result<ScheduleStart, StoreError> {
    let bad = |column| damaged(column, schedule);
    let run: Option<&str> = row.get("run");
    let run = run.map(str::parse).transpose().map_err(|_| bad("run"))?;
    let error = maybe_shared(row, "error");
    Ok(ScheduleStart {
        tick: moment(row, "tick"),
        at: moment(row, "at"),
        tries: row.get::<_, i32>("tries").cast_unsigned(),
        by: maybe_shared(row, "started_by"),
        outcome: StartOutcome::from_stored(row.get("outcome"), run, error.as_deref())
            .ok_or_else(|| bad("outcome"))?,
    })
}

fn record(row: &Row) -> Result<ScheduleRecord, StoreError> {
    let last_run: Option<&str> = row.get("last_run");
    let last_run = last_run.map(str::parse).transpose().map_err(|_| damaged("last_run", row.get(0)))?;
    Ok(ScheduleRecord { schedule: json(row, "spec")?, next_at: maybe_moment(row, "next_at"), last_run })
}
