//! Changes that belong to no run. Each is written in one transaction with the operation that made it.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use switchyard_core::run::Refusal;
use switchyard_core::{OperationId, Timestamp};
use switchyard_store::{
    Mutation, MutationOutcome, OperationRecord, OperationRequest, Operations, StoreError,
};

use super::readers::{Answer, Unread, at_most, one};
use super::rows::{moment, parsed};
use super::work::{Failure, Performed, Work};
use super::{SqliteArchive, Writing, access, bulk, dead_letters, deletion, registry, schedules};

const COLUMNS: &str = "id, kind, fingerprint, outcome, at";

#[async_trait]
impl Operations for SqliteArchive {
    async fn mutate(
        &self,
        mutation: Mutation,
        operation: Option<&OperationRequest>,
    ) -> Result<MutationOutcome, StoreError> {
        let operation = operation.cloned();
        let of_keys = matches!(mutation, Mutation::PutApiKey(_) | Mutation::RevokeApiKey { .. });
        if of_keys && matches!(self.writing, Writing::KeysBeside) {
            return self.mutate_beside(mutation, operation).await;
        }
        match self.write(Work::Mutation { mutation: Box::new(mutation), operation }).await? {
            Performed::Mutated(outcome) => Ok(outcome?),
            other => Err(StoreError::Corrupt(format!("a mutation was answered {other:?}"))),
        }
    }

    async fn operation(&self, id: &OperationId) -> Result<Option<OperationRecord>, StoreError> {
        let id = id.clone();
        self.readers.ask(move |conn| by_id(conn, &id)).await
    }

    async fn forget_operations(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.write(Work::ForgetOperations { before, limit }).await.map(Performed::removed)
    }
}

impl SqliteArchive {
    /// Changes the keys of a file that another process works on.
    async fn mutate_beside(
        &self,
        mutation: Mutation,
        operation: Option<OperationRequest>,
    ) -> Result<MutationOutcome, StoreError> {
        let path = self.readers.path().to_owned();
        let mutating =
            tokio::task::spawn_blocking(move || access::mutate_beside(&path, &mutation, operation.as_ref()));
        mutating.await.unwrap_or_else(|e| Err(StoreError::OutcomeUnknown(format!("interrupted: {e}"))))
    }
}

/// Applies a change inside a transaction. An operation that was carried out before changes nothing and returns the
/// same result.
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
            MutationOutcome::Workflow(registry::register(conn, name, *definition, *at)?)
        }
        Mutation::PutSchedule(record) => {
            schedules::put(conn, record)?;
            MutationOutcome::Schedule(record.clone())
        }
        Mutation::RemoveSchedule { name } => MutationOutcome::Changed(schedules::remove(conn, name)?),
        Mutation::PutApiKey(record) => {
            access::put(conn, record)?;
            MutationOutcome::ApiKey(record.id.clone())
        }
        Mutation::RevokeApiKey { id, at } => MutationOutcome::Changed(access::revoke(conn, id, *at)?),
        Mutation::PurgeDeadLetters(which) => MutationOutcome::Removed(dead_letters::purge(conn, which)?),
        Mutation::DeleteRun(request) => MutationOutcome::Deletion(deletion::delete(conn, request)?),
        Mutation::StartBulk(job) => {
            bulk::put(conn, job)?;
            MutationOutcome::Bulk(job.clone())
        }
        Mutation::StopBulk { id, at } => MutationOutcome::Changed(bulk::stop(conn, id, *at)?),
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
    Ok(conn.prepare_cached(forget)?.execute(params![before.as_millis(), at_most(limit)])?)
}

fn by_id(conn: &Connection, id: &OperationId) -> Answer<Option<OperationRecord>> {
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
