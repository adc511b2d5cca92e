//! The archive in Postgres: one task appends, a pool of connections does everything else.
//!
//! - `writer`: the task; everything that waits is one transaction and one commit
//! - `session`: its connection and statements
//! - `group`: which calls fit what is stored, and what they change
//! - `project`: the rows of runs and approvals that follow from events
//! - `operations`: changes that belong to no run, each in a transaction with the id that it was asked for with
//! - `read`, `schedules`, `workflows`, `keys`, `retain`: the rest, on the pool

mod dead;
mod group;
mod keys;
mod operations;
mod project;
mod read;
mod retain;
mod rows;
mod schedules;
mod session;
mod workflows;
mod writer;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::run::Event;
use switchyard_core::{ApprovalId, Hash, OperationId, Payload, RunId, Timestamp};
use switchyard_store::{
    Ack, ApiKeyRecord, AppliedOperation, ApprovalFilter, ApprovalRecord, Archive, ArchiveMark, DeadLetter,
    Mutation, MutationOutcome, OperationRecord, OperationRequest, Page, Retention, RunFilter, RunRecord,
    ScheduleRecord, StoreError, Unfinished, WorkflowRecord,
};

use crate::pool::Pool;
use crate::{Target, migrations, text};
use writer::Writer;

/// A handle on the archive. What was handed over before the last clone is dropped is still written, as long as the
/// runtime that opened it goes on.
#[derive(Debug, Clone)]
pub struct PostgresArchive {
    pool: Pool,
    writer: Writer,
}

/// How to use an archive, for those who need to deviate.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections for everything but appends, which have one of their own.
    pub connections: usize,
    /// How long an append looks for a lost server before it fails.
    pub retry_for: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: 8, retry_for: Duration::from_secs(5) }
    }
}

impl PostgresArchive {
    /// Opens what [`migrate`](crate::migrate) has made.
    pub async fn open(target: Target) -> Result<Self, StoreError> {
        Self::open_custom(target, Options::default()).await
    }

    /// The same with options.
    pub async fn open_custom(target: Target, options: Options) -> Result<Self, StoreError> {
        migrations::check_current(&target).await?;
        let pool = Pool::new(target.clone(), options.connections)?;
        Ok(Self { pool, writer: Writer::start(target, options.retry_for) })
    }
}

#[async_trait]
impl Archive for PostgresArchive {
    async fn mark(&self) -> Result<ArchiveMark, StoreError> {
        read::mark(&self.pool).await
    }

    fn append(&self, events: Vec<Event>) -> Ack {
        Box::pin(self.writer.hand_over(events))
    }

    async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        read::events(&self.pool, run, after, limit).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        read::run(&self.pool, run).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError> {
        read::runs(&self.pool, filter).await
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        read::unfinished(&self.pool).await
    }

    async fn unfinished_with_ended_children(&self) -> Result<Vec<RunId>, StoreError> {
        read::unfinished_with_ended_children(&self.pool).await
    }

    async fn by_idempotency_key(&self, key: &str) -> Result<Option<(RunId, Hash)>, StoreError> {
        read::by_idempotency_key(&self.pool, key).await
    }

    async fn run_operation(
        &self,
        run: RunId,
        id: &OperationId,
    ) -> Result<Option<AppliedOperation>, StoreError> {
        read::run_operation(&self.pool, run, id).await
    }

    async fn put_definition(&self, hash: Hash, canonical: Arc<str>) -> Result<(), StoreError> {
        // The same workflow is submitted again and again: looking costs less than a commit.
        if read::has_definition(&self.pool, hash).await? {
            return Ok(());
        }
        let sql = "INSERT INTO definitions (hash, body) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        self.pool.change(sql, &[&hash.to_string(), &&*canonical]).await.map(drop)
    }

    async fn definition(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        read::definition(&self.pool, hash).await
    }

    async fn mutate(
        &self,
        mutation: Mutation,
        operation: Option<&OperationRequest>,
    ) -> Result<MutationOutcome, StoreError> {
        operations::mutate(&self.pool, &mutation, operation).await
    }

    async fn operation(&self, id: &OperationId) -> Result<Option<OperationRecord>, StoreError> {
        operations::by_id(&self.pool, id).await
    }

    async fn forget_operations(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        operations::forget(&self.pool, before, limit).await
    }

    async fn workflow(&self, name: &str, version: Option<u32>) -> Result<Option<WorkflowRecord>, StoreError> {
        workflows::by_name(&self.pool, name, version).await
    }

    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, StoreError> {
        workflows::newest(&self.pool).await
    }

    async fn advance_schedule(
        &self,
        name: &str,
        seen: Option<Timestamp>,
        next: Option<Timestamp>,
        last_run: Option<RunId>,
    ) -> Result<bool, StoreError> {
        schedules::advance(&self.pool, name, seen, next, last_run).await
    }

    async fn schedule(&self, name: &str) -> Result<Option<ScheduleRecord>, StoreError> {
        schedules::by_name(&self.pool, name).await
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError> {
        schedules::all(&self.pool).await
    }

    async fn any_api_key(&self) -> Result<bool, StoreError> {
        keys::any(&self.pool).await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        keys::all(&self.pool).await
    }

    async fn api_key(&self, id: &str) -> Result<Option<ApiKeyRecord>, StoreError> {
        keys::by_id(&self.pool, id).await
    }

    async fn bury(&self, letter: DeadLetter) -> Result<(), StoreError> {
        dead::bury(&self.pool, &letter).await
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        dead::newest(&self.pool, limit).await
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>, StoreError> {
        dead::by_id(&self.pool, id).await
    }

    async fn approval(&self, approval: &ApprovalId) -> Result<Option<ApprovalRecord>, StoreError> {
        read::approval(&self.pool, approval).await
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRecord>, StoreError> {
        read::approvals(&self.pool, filter).await
    }

    async fn cached(&self, scope: &str, key: &str, now: Timestamp) -> Result<Option<Payload>, StoreError> {
        read::cached(&self.pool, scope, key, now).await
    }

    async fn cache(
        &self,
        scope: &str,
        key: &str,
        value: Payload,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let (scope, key) = (text::stored(scope), text::stored(key));
        let expires_at = now.plus(ttl).as_millis();
        if let Payload::Cas(reference) = &value {
            let hold = "INSERT INTO payload_refs (hash, holder, released_at) VALUES ($1, 'cache', $2)
                ON CONFLICT (hash, holder) DO UPDATE
                SET released_at = greatest(payload_refs.released_at, excluded.released_at)";
            self.pool.change(hold, &[&reference.hash.to_string(), &expires_at]).await?;
        }
        let remember = "INSERT INTO cache (scope, key, value, expires_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at";
        self.pool.change(remember, &[&scope, &key, &session::json(&value), &expires_at]).await?;
        // Rows that another process has locked are left to it.
        let forget = "DELETE FROM cache WHERE (scope, key) IN
            (SELECT scope, key FROM cache WHERE expires_at <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)";
        self.pool.change(forget, &[&now.as_millis()]).await.map(drop)
    }

    async fn retain(&self, policy: &Retention, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        retain::pass(&self.pool, policy, now, limit).await
    }

    async fn held_payloads(&self, of: &[Hash], since: Timestamp) -> Result<HashSet<Hash>, StoreError> {
        retain::held_payloads(&self.pool, of, since).await
    }
}
