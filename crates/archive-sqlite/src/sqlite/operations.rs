//! Changes that belong to no run, and the operations that they were made by: in one transaction.

use rusqlite::{Connection, Row, params};
use switchyard_core::run::Refusal;
use switchyard_core::{OperationId, Timestamp};
use switchyard_store::{Mutation, MutationOutcome, OperationRecord, OperationRequest, StoreError};

use super::journal::Failure;
use super::read::{Answer, Unread, one};
use super::rows::{moment, parsed};
use super::{dead, keys, schedules, workflows};

const COLUMNS: &str = "id, kind, fingerprint, outcome, at";

/// Inside a transaction. An operation that was carried out before changes nothing and answers the same.
pub(super) fn mutate(
    conn: &Connection,
    mutation: &Mutation,
    operation: Option<&OperationRequest>,
) -> Result<Result<MutationOutcome, Refusal>, Failure> {
    let Some(operation) = operation else { return carry_out(conn, mutation).map(Ok) };
    if let Some(known) = by_id(conn, &operation.id)? {
        return Ok(known.answer(operation));
    }
    let outcome = carry_out(conn, mutation)?;
    keep(conn, operation, &outcome)?;
    Ok(Ok(outcome))
}

fn carry_out(conn: &Connection, mutation: &Mutation) -> Result<MutationOutcome, Failure> {
    Ok(match mutation {
        Mutation::RegisterWorkflow { name, definition, at } => {
            MutationOutcome::Workflow(workflows::register(conn, name, *definition, *at)?)
        }
        Mutation::PutSchedule(record) => {
            schedules::put(conn, record)?;
            MutationOutcome::Schedule(record.clone())
        }
        Mutation::RemoveSchedule { name } => MutationOutcome::Changed(schedules::remove(conn, name)?),
        Mutation::PutApiKey(record) => {
            keys::put(conn, record)?;
            MutationOutcome::ApiKey(record.id.clone())
        }
        Mutation::RevokeApiKey { id, at } => MutationOutcome::Changed(keys::revoke(conn, id, *at)?),
        Mutation::PurgeDeadLetters(which) => MutationOutcome::Removed(dead::purge(conn, which)?),
        Mutation::Note(note) => MutationOutcome::Noted(note.clone()),
    })
}

fn keep(conn: &Connection, operation: &OperationRequest, outcome: &MutationOutcome) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO operations (id, kind, fingerprint, outcome, at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        operation.id.as_str(),
        operation.kind,
        operation.fingerprint.to_string(),
        serde_json::to_string(outcome)?,
        operation.at.as_millis(),
    ])?;
    Ok(())
}

pub(super) fn forget(conn: &Connection, before: Timestamp, limit: usize) -> Result<usize, Failure> {
    let forget = "DELETE FROM operations WHERE id IN (SELECT id FROM operations WHERE at < ?1 LIMIT ?2)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(conn.prepare_cached(forget)?.execute(params![before.as_millis(), limit])?)
}

pub(super) fn by_id(conn: &Connection, id: &OperationId) -> Answer<Option<OperationRecord>> {
    one(conn, &format!("SELECT {COLUMNS} FROM operations WHERE id = ?1"), [id.as_str()], record)
}

fn record(row: &Row<'_>) -> Answer<OperationRecord> {
    let outcome: String = row.get("outcome")?;
    let damaged = |error| Unread::Store(StoreError::Corrupt(format!("an operation's outcome: {error}")));
    Ok(OperationRecord {
        request: OperationRequest {
            id: parsed(row, "id")?,
            kind: row.get("kind")?,
            fingerprint: parsed(row, "fingerprint")?,
            at: moment(row, "at")?,
        },
        outcome: serde_json::from_str(&outcome).map_err(damaged)?,
    })
}
