//! Changes that belong to no run. Each is written in one transaction with the operation that made it.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use deadpool_postgres::Object;
use switchyard_core::run::Refusal;
use switchyard_core::{OperationId, Timestamp};
use switchyard_store::{
    Mutation, MutationOutcome, OperationRecord, OperationRequest, Operations, StoreError,
};
use tokio::time::timeout;
use tokio_postgres::{Error, Row, Transaction};

use super::rows::{at_most, json, moment, parsed, shared, to_json};
use super::{PostgresArchive, access, bulk, dead_letters, deletion, registry, schedules};
use crate::error::{cannot_write, lost_while_writing};
use crate::pool::{self, BULK_ANSWER_MAX, Pool};

const BY_ID: &str = "SELECT id, kind, fingerprint, outcome, at FROM operations WHERE id = $1";

#[async_trait]
impl Operations for PostgresArchive {
    async fn mutate(
        &self,
        mutation: Mutation,
        operation: Option<&OperationRequest>,
    ) -> Result<MutationOutcome, StoreError> {
        match mutation {
            Mutation::PurgeDeadLetters(_) => {
                mutate(&self.pool.within(BULK_ANSWER_MAX), &mutation, operation).await
            }
            _ => mutate(&self.pool, &mutation, operation).await,
        }
    }

    async fn operation(&self, id: &OperationId) -> Result<Option<OperationRecord>, StoreError> {
        self.pool.row(BY_ID, &[&id.as_str()]).await?.as_ref().map(record).transpose()
    }

    async fn forget_operations(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let sql = "DELETE FROM operations WHERE id IN
            (SELECT id FROM operations WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)";
        let forgotten = self.pool.change(sql, &[&before.as_millis(), &at_most(limit)]).await?;
        Ok(usize::try_from(forgotten).unwrap_or(usize::MAX))
    }
}

/// Why a mutation failed.
pub(super) enum Failure {
    Postgres(Error),
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Applies a change. An operation that was carried out before changes nothing and returns the same result.
async fn mutate(
    pool: &Pool,
    mutation: &Mutation,
    operation: Option<&OperationRequest>,
) -> Result<MutationOutcome, StoreError> {
    let mut connection = pool.take_answering().await?;
    let committing = AtomicBool::new(false);
    let mutating = transact(pool, &mut connection, &committing, mutation, operation);
    match timeout(pool.answer_max(), mutating).await {
        Ok(answer) => answer,
        Err(_) => {
            pool::discard(connection);
            Err(match committing.load(Ordering::Relaxed) {
                true => StoreError::OutcomeUnknown(pool.late()),
                false => StoreError::Unavailable(pool.late()),
            })
        }
    }
}

/// Applies a change in one transaction. `committing` is set when COMMIT is sent: from then on the change may be
/// stored.
async fn transact(
    pool: &Pool,
    connection: &mut Object,
    committing: &AtomicBool,
    mutation: &Mutation,
    operation: Option<&OperationRequest>,
) -> Result<MutationOutcome, StoreError> {
    let unable = |error: Error| cannot_write(pool.target(), &error);
    let transaction = connection.transaction().await.map_err(unable)?;
    let outcome = match attempt(&transaction, mutation, operation).await {
        Ok(outcome) => outcome,
        Err(Failure::Postgres(error)) => return Err(unable(error)),
        Err(Failure::Store(error)) => return Err(error),
    };
    committing.store(true, Ordering::Relaxed);
    transaction.commit().await.map_err(|error| lost_while_writing(pool.target(), &error))?;
    Ok(outcome?)
}

async fn attempt(
    transaction: &Transaction<'_>,
    mutation: &Mutation,
    operation: Option<&OperationRequest>,
) -> Result<Result<MutationOutcome, Refusal>, Failure> {
    let Some(operation) = operation else { return carry_out(transaction, mutation).await.map(Ok) };
    // A concurrent repetition of the operation waits here for the outcome of the first.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' operation ' || $1, 0))";
    transaction.execute(lock, &[&operation.id.as_str()]).await?;
    if let Some(row) = transaction.query_opt(BY_ID, &[&operation.id.as_str()]).await? {
        return Ok(record(&row)?.answer(operation));
    }
    let outcome = carry_out(transaction, mutation).await?;
    let keep = "INSERT INTO operations (id, kind, fingerprint, outcome, at) VALUES ($1, $2, $3, $4, $5)";
    let (fingerprint, at) = (operation.fingerprint.to_string(), operation.at.as_millis());
    let outcome_text = to_json(&outcome);
    transaction
        .execute(keep, &[&operation.id.as_str(), &&*operation.kind, &fingerprint, &outcome_text, &at])
        .await?;
    Ok(Ok(outcome))
}

async fn carry_out(transaction: &Transaction<'_>, mutation: &Mutation) -> Result<MutationOutcome, Failure> {
    Ok(match mutation {
        Mutation::RegisterWorkflow { name, definition, at } => {
            MutationOutcome::Workflow(registry::register(transaction, name, *definition, *at).await?)
        }
        Mutation::PutSchedule(record) => {
            schedules::put(transaction, record).await?;
            MutationOutcome::Schedule(record.clone())
        }
        Mutation::RemoveSchedule { name } => {
            MutationOutcome::Changed(schedules::remove(transaction, name).await?)
        }
        Mutation::PutApiKey(record) => {
            access::put(transaction, record).await?;
            MutationOutcome::ApiKey(record.id.clone())
        }
        Mutation::RevokeApiKey { id, at } => {
            MutationOutcome::Changed(access::revoke(transaction, id, *at).await?)
        }
        Mutation::PurgeDeadLetters(which) => {
            MutationOutcome::Removed(dead_letters::purge(transaction, which).await?)
        }
        Mutation::DeleteRun(request) => {
            MutationOutcome::Deletion(deletion::delete(transaction, request).await?)
        }
        Mutation::StartBulk(job) => {
            bulk::put(transaction, job).await?;
            MutationOutcome::Bulk(job.clone())
        }
        Mutation::StopBulk { id, at } => MutationOutcome::Changed(bulk::stop(transaction, id, *at).await?),
        Mutation::Note(note) => MutationOutcome::Noted(note.clone()),
    })
}

fn record(row: &Row) -> Result<OperationRecord, StoreError> {
    Ok(OperationRecord {
        request: OperationRequest {
            id: parsed(row, "id")?,
            kind: shared(row, "kind"),
            fingerprint: parsed(row, "fingerprint")?,
            at: moment(row, "at"),
        },
        outcome: json(row, "outcome")?,
    })
}
