//! What happened, for good.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use switchyard_core::error::RunError;
use switchyard_core::run::{Event, RunStatus};
use switchyard_core::schedule::Schedule;
use switchyard_core::{ApprovalId, Hash, OperationId, Payload, RunId, Timestamp, time};

use crate::{DeadLetter, Mutation, MutationOutcome, OperationRecord, OperationRequest, Purge, StoreError};

/// Resolves when what was handed over is durable.
pub type Ack = BoxFuture<'static, Result<(), StoreError>>;

/// Where history lives. The rows of runs and approvals are projections of the events, kept by [`Archive::append`].
#[async_trait]
pub trait Archive: Send + Sync + 'static {
    /// Which archive this is, and how far it has come.
    async fn mark(&self) -> Result<ArchiveMark, StoreError>;

    /// Takes events of any runs, in order. Calls are committed in the order in which they are made, many at once.
    /// An event that is there already (same run and seq) changes nothing if it says the same; if it says something
    /// else, the call is refused as [`StoreError::Diverged`]. A gap in a run's seq is refused as
    /// [`StoreError::Corrupt`]. Of a call that is refused nothing is kept, and other calls go on.
    ///
    /// An empty append is a barrier: it is acknowledged after everything that was handed over before it.
    ///
    /// Not an `async fn`: the place in the order is taken at the call, not at the first poll. After
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`] the events may be handed over again; an archive that is a file of this process
    /// may take nothing any more instead, because what it has in hand may be worth less than what is on the disk.
    fn append(&self, events: Vec<Event>) -> Ack;

    /// Events of a run with `seq > after`, in order, at most `limit`.
    async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;

    async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError>;

    /// Every run that has not ended, oldest first.
    async fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError>;

    /// Unfinished runs that have started children, all of which have ended, oldest first.
    async fn unfinished_with_ended_children(&self) -> Result<Vec<RunId>, StoreError>;

    /// The run that was accepted with this idempotency key, and the hash of its body.
    async fn by_idempotency_key(&self, key: &str) -> Result<Option<(RunId, Hash)>, StoreError>;

    /// The operation with this id that took effect on a run.
    async fn run_operation(
        &self,
        run: RunId,
        id: &OperationId,
    ) -> Result<Option<AppliedOperation>, StoreError>;

    /// Keeps a definition's canonical text under its hash; durable at return.
    async fn put_definition(&self, hash: Hash, canonical: Arc<str>) -> Result<(), StoreError>;

    async fn definition(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError>;

    /// Makes a change that belongs to no run. Given an operation, its id and its answer are kept in the same transaction
    /// for [`OPERATIONS_KEPT`](crate::OPERATIONS_KEPT): the same operation again changes nothing and answers the same,
    /// and another request under its id is refused as
    /// [`Refusal::OperationReused`](switchyard_core::run::Refusal::OperationReused).
    async fn mutate(
        &self,
        mutation: Mutation,
        operation: Option<&OperationRequest>,
    ) -> Result<MutationOutcome, StoreError>;

    /// What an operation came to, as long as it is kept.
    async fn operation(&self, id: &OperationId) -> Result<Option<OperationRecord>, StoreError>;

    /// One pass of the duty that lets operations go: removes at most `limit` from before this moment. How many.
    async fn forget_operations(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// [`Mutation::RegisterWorkflow`] without an operation.
    async fn register_workflow(
        &self,
        name: &str,
        definition: Hash,
        at: Timestamp,
    ) -> Result<WorkflowRecord, StoreError> {
        self.mutate(Mutation::RegisterWorkflow { name: name.to_owned(), definition, at }, None)
            .await?
            .workflow()
    }

    /// A version of a workflow, or the newest.
    async fn workflow(&self, name: &str, version: Option<u32>) -> Result<Option<WorkflowRecord>, StoreError>;

    /// The newest version of every workflow, by name.
    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, StoreError>;

    /// [`Mutation::PutSchedule`] without an operation.
    async fn put_schedule(&self, record: ScheduleRecord) -> Result<(), StoreError> {
        self.mutate(Mutation::PutSchedule(Box::new(record)), None).await.map(drop)
    }

    /// [`Mutation::RemoveSchedule`] without an operation. Whether there was one.
    async fn remove_schedule(&self, name: &str) -> Result<bool, StoreError> {
        self.mutate(Mutation::RemoveSchedule { name: name.to_owned() }, None).await?.changed()
    }

    /// Moves a schedule on to its next tick, if it still stands at the one that was seen. Whether it did: of
    /// several servers, one.
    async fn advance_schedule(
        &self,
        name: &str,
        seen: Option<Timestamp>,
        next: Option<Timestamp>,
        last_run: Option<RunId>,
    ) -> Result<bool, StoreError>;

    async fn schedule(&self, name: &str) -> Result<Option<ScheduleRecord>, StoreError>;

    /// By name.
    async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError>;

    /// [`Mutation::PutApiKey`] without an operation.
    async fn put_api_key(&self, record: ApiKeyRecord) -> Result<(), StoreError> {
        self.mutate(Mutation::PutApiKey(Box::new(record)), None).await.map(drop)
    }

    /// Whether a key was ever made. Asked for every request while there is none, so it is as cheap as a question can be.
    async fn any_api_key(&self) -> Result<bool, StoreError>;

    /// Every key that was ever made, oldest first.
    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    async fn api_key(&self, id: &str) -> Result<Option<ApiKeyRecord>, StoreError>;

    /// [`Mutation::RevokeApiKey`] without an operation. Whether there was such a key, and it was not revoked before.
    async fn revoke_api_key(&self, id: &str, at: Timestamp) -> Result<bool, StoreError> {
        self.mutate(Mutation::RevokeApiKey { id: id.to_owned(), at }, None).await?.changed()
    }

    /// Keeps a dead letter that follows from no event, instead of one that has this id. Those of nodes are kept by
    /// [`Archive::append`], and go when their node starts over.
    async fn bury(&self, letter: DeadLetter) -> Result<(), StoreError>;

    /// Newest first, without their signals, which may be large.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError>;

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>, StoreError>;

    /// [`Mutation::PurgeDeadLetters`] without an operation. How many were removed.
    async fn purge(&self, which: Purge) -> Result<usize, StoreError> {
        self.mutate(Mutation::PurgeDeadLetters(which), None).await?.removed()
    }

    async fn approval(&self, approval: &ApprovalId) -> Result<Option<ApprovalRecord>, StoreError>;

    /// Newest first.
    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRecord>, StoreError>;

    /// A remembered result that has not expired at `now`.
    async fn cached(&self, scope: &str, key: &str, now: Timestamp) -> Result<Option<Payload>, StoreError>;

    /// Remembers a result. Not awaited by the run that made it: a cache may forget.
    async fn cache(
        &self,
        scope: &str,
        key: &str,
        value: Payload,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError>;

    /// One pass of the retention duty: removes ended runs that `policy` no longer keeps, the earliest ends first, at
    /// most `limit` of them, each with its events, its approvals and the runs that it started, all of it or nothing.
    /// A run of which anything is still under way is kept. How many were removed, without those they had started;
    /// fewer than `limit` means that there are no more.
    async fn retain(&self, policy: &Retention, now: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Which of these payloads of the CAS something here mentions, or mentioned after `since`: a run, a schedule, a
    /// remembered result.
    async fn held_payloads(&self, of: &[Hash], since: Timestamp) -> Result<HashSet<Hash>, StoreError>;
}

/// What tells an archive from others, and from an earlier state of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMark {
    /// Drawn by its first migration. A copy has the id of the original.
    pub id: Arc<str>,
    /// For people, without passwords.
    pub location: Arc<str>,
    /// The moment of a recent event. It grows with what is appended, at most [`MARK_EVERY`] late, and never falls: an
    /// archive whose position is behind one that was seen before was restored to an earlier time.
    pub position: Timestamp,
}

/// How often an archive that is appended to writes down its position at most. A position for every commit would cost
/// each of them a row.
pub const MARK_EVERY: Duration = Duration::from_millis(100);

/// A command that took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedOperation {
    /// Of the event that it began with.
    pub seq: u64,
    /// The hash of what was asked for.
    pub command: Hash,
}

/// What is kept of runs that have ended. Nothing is removed by an empty policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How long after their end.
    pub keep_for: Option<Duration>,
    /// How many, the latest ends first. Runs that another run started are not counted: they go with it.
    pub keep_runs: Option<u64>,
    /// How long a payload stays in the CAS after it was put and after nothing mentions it any more. What is being
    /// submitted, forked or taken from the cache is not mentioned yet, nor are events that are still on their way
    /// here: this must be longer than any of that takes.
    pub payload_grace: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep_for: None, keep_runs: None, payload_grace: Duration::from_secs(24 * 3600) }
    }
}

/// A run as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub run_id: RunId,
    pub workflow: Arc<str>,
    pub workflow_version: Option<u32>,
    pub definition: Hash,
    pub status: RunStatus,
    #[serde(with = "time::rfc3339")]
    pub accepted_at: Timestamp,
    #[serde(with = "time::rfc3339::option")]
    pub ended_at: Option<Timestamp>,
    pub parent: Option<RunId>,
    pub error: Option<RunError>,
    /// The seq of its newest event here.
    pub last_seq: u64,
}

/// A run that has not ended, and how much of its history is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    pub run: RunId,
    /// The seq of its newest event.
    pub last_seq: u64,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    pub workflow: Option<String>,
    /// Runs that another run started are left out unless asked for.
    pub include_children: bool,
    /// Only runs older than this one: the cursor of the page before.
    pub before: Option<RunId>,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Hand it back as `before` for the next page.
    pub next: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    pub name: String,
    pub version: u32,
    pub definition: Hash,
    #[serde(with = "time::rfc3339")]
    pub created_at: Timestamp,
}

/// A schedule and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    pub schedule: Schedule,
    /// The next tick; none if it never comes again.
    #[serde(with = "time::rfc3339::option")]
    pub next_at: Option<Timestamp>,
    /// Of its newest tick.
    pub last_run: Option<RunId>,
}

/// A key that lets its holder in. The key itself is nowhere. What is shown of it is `ApiKeyView` in `crates/api`.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKeyRecord {
    /// In the key itself as well, so that it is found without trying all of them.
    pub id: String,
    /// Whose it is or what for; for people.
    pub name: String,
    /// SHA-256 of its secret.
    pub digest: Hash,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// An approval as it is kept. What is shown of it is `Approval` in `crates/api`.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRecord {
    pub approval: ApprovalId,
    pub run: RunId,
    pub node: Arc<str>,
    pub status: ApprovalStatus,
    pub approver: Option<Arc<str>>,
    pub prompt: Option<Arc<str>>,
    pub payload: Payload,
    pub created_at: Timestamp,
    pub timeout_at: Option<Timestamp>,
    pub decided_at: Option<Timestamp>,
    pub decided_by: Option<Arc<str>>,
    pub comment: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    Approved,
    Rejected,
    /// The approval timed out, and the policy was to fail.
    TimedOut,
    /// Its run was closed before a decision.
    Cancelled,
}

#[derive(Clone, Debug, Default)]
pub struct ApprovalFilter {
    pub run: Option<RunId>,
    pub status: Option<ApprovalStatus>,
}
