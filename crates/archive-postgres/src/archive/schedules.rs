//! Schedules and their next ticks.

use async_trait::async_trait;
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{ScheduleRecord, Schedules, StoreError};
use tokio_postgres::{Error, Row, Transaction};

use super::PostgresArchive;
use super::rows::{damaged, json, maybe_moment, millis, to_json};
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
}

pub(super) async fn put(transaction: &Transaction<'_>, record: &ScheduleRecord) -> Result<(), Error> {
    let name = &record.schedule.name;
    // With its input's place in the CAS, if it has one, in the same statement.
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

/// Whether there was one.
pub(super) async fn remove(transaction: &Transaction<'_>, name: &str) -> Result<bool, Error> {
    let remove =
        "WITH let_go AS (DELETE FROM payload_refs WHERE holder = $2) DELETE FROM schedules WHERE name = $1";
    Ok(transaction.execute(remove, &[&text::stored(name), &holder(name)]).await? > 0)
}

/// Who holds on to a schedule's input.
fn holder(name: &str) -> String {
    format!("schedule/{}", text::stored(name))
}

fn record(row: &Row) -> Result<ScheduleRecord, StoreError> {
    let last_run: Option<&str> = row.get("last_run");
    let last_run = last_run.map(str::parse).transpose().map_err(|_| damaged("last_run", row.get(0)))?;
    Ok(ScheduleRecord { schedule: json(row, "spec")?, next_at: maybe_moment(row, "next_at"), last_run })
}
