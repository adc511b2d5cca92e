//! The target of commands: a server or a data folder. Every command is written once, on [`Target`].

mod find;
mod folder;
mod server;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use switchyard_api::{
    ApiKeyView, Approval, Backfilled, BulkAction, BulkPreview, BulkResult, BulkView, DeadLetterGroup,
    DeadLetterView, Event, Forked, KeyText, LogPage, PatchReport, PatchView, QueuesView, Redriven, RunAt,
    RunCountView, RunPage, RunView, RunWaits, ScheduleView, Tombstone, WorkersView, WorkflowRecord,
};
use switchyard_base::PatchOp;
use switchyard_core::run::{Concurrency, Decision};
use switchyard_core::schedule::{CatchUp, Overlap};
use switchyard_core::{ApprovalId, Labels, OperationId, PatchId, RunId, Timestamp};
use switchyard_lang::Program;
use switchyard_runtime::{PurgeRequest, Start};
use switchyard_store::RunFilter;
use tokio::sync::watch;

use crate::errors::Failure;

pub(crate) use find::{NO_SERVER, find, rank};
pub(crate) use folder::{create_key, revoke_key};

/// All operations of commands on a server or a data folder. Dropping it without [`Target::leave`] loses no data.
#[async_trait]
pub(crate) trait Target: Send + Sync {
    async fn runs(&self, filter: &RunFilter) -> Result<RunPage, Failure>;
    /// How many runs a filter finds; up to 1,000 unless the count is to be exact.
    async fn count_runs(&self, filter: &RunFilter, exact: bool) -> Result<RunCountView, Failure>;
    /// A run as it is, or as it was right after one of its events.
    async fn run(&self, run: RunId, at: Option<u64>) -> Result<RunView, Failure>;
    /// Runs that have not ended and that no other run waits for, oldest first.
    async fn unfinished(&self) -> Result<Vec<RunAt>, Failure>;
    /// A page of the events that exist now.
    async fn events(&self, run: RunId, after: u64) -> Result<Vec<Event>, Failure>;
    /// A page of the lines that steps have logged so far.
    async fn logs(&self, run: RunId, query: &LogsQuery) -> Result<LogPage, Failure>;
    /// Streams the events after `after` as they happen.
    async fn follow(&self, run: RunId, after: u64) -> Result<Box<dyn Follow>, Failure>;
    async fn approvals(&self, run: Option<RunId>, all: bool) -> Result<Vec<Approval>, Failure>;
    /// An approval with its whole payload.
    async fn approval(&self, approval: &ApprovalId) -> Result<Approval, Failure>;
    async fn patches(&self, run: RunId) -> Result<Vec<PatchView>, Failure>;
    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, Failure>;
    async fn definition(&self, name: &str, version: Option<u32>) -> Result<Value, Failure>;
    async fn schedules(&self) -> Result<Vec<ScheduleView>, Failure>;
    /// A schedule with `upcoming` of its next starts and the outcomes of `starts` of its newest ticks.
    async fn schedule(&self, name: &str, upcoming: usize, starts: usize) -> Result<ScheduleView, Failure>;

    async fn queues(&self) -> Result<QueuesView, Failure>;
    /// Workers that reported within a day.
    async fn workers(&self) -> Result<WorkersView, Failure>;
    /// Why a run waits at this moment.
    async fn waits(&self, run: RunId) -> Result<RunWaits, Failure>;
    /// Dead letters, newest first.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetterView>, Failure>;
    /// Dead letters grouped by kind, node and reason, the largest groups first.
    async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, Failure>;
    /// A dead letter with every delivery that led to it.
    async fn dead_letter(&self, id: &str) -> Result<DeadLetterView, Failure>;

    async fn submit(&self, wanted: &Wanted) -> Result<Taken, Failure>;
    async fn cancel(&self, run: RunId, reason: &str, compensate: bool, now: bool) -> Result<RunAt, Failure>;
    async fn pause(&self, run: RunId) -> Result<RunAt, Failure>;
    async fn resume(&self, run: RunId) -> Result<RunAt, Failure>;
    async fn signal(&self, run: RunId, name: &str, payload: &Value) -> Result<RunAt, Failure>;
    async fn retry(&self, run: RunId) -> Result<RunAt, Failure>;
    async fn fork(&self, fork: Fork) -> Result<Forked, Failure>;
    /// Deletes a run that has ended, with the runs that it started.
    async fn delete_run(&self, run: RunId, reason: &str) -> Result<Tombstone, Failure>;
    /// Deleted runs, the latest deletions first.
    async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, Failure>;
    /// How many runs a bulk job would change.
    async fn preview_bulk(&self, action: &BulkAction, filter: &RunFilter) -> Result<BulkPreview, Failure>;
    /// Starts a bulk job. In a folder, also completes it.
    async fn start_bulk(&self, action: &BulkAction, filter: &RunFilter) -> Result<BulkView, Failure>;
    async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkView>, Failure>;
    async fn bulk_job(&self, id: &str) -> Result<BulkView, Failure>;
    /// The results of a bulk job, one for each run.
    async fn bulk_results(&self, id: &str, limit: usize) -> Result<Vec<BulkResult>, Failure>;
    async fn stop_bulk(&self, id: &str) -> Result<BulkView, Failure>;
    async fn decide(
        &self,
        approval: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: &str,
    ) -> Result<RunAt, Failure>;
    async fn patch(&self, run: RunId, patch: Patch) -> Result<PatchReport, Failure>;
    async fn undo_patch(
        &self,
        run: RunId,
        patch: &PatchId,
        author: &str,
        dry_run: bool,
    ) -> Result<PatchReport, Failure>;
    async fn register(&self, program: &Arc<Program>) -> Result<WorkflowRecord, Failure>;
    async fn put_schedule(&self, schedule: NewSchedule) -> Result<ScheduleView, Failure>;
    async fn pause_schedule(&self, name: &str, paused: bool) -> Result<ScheduleView, Failure>;
    async fn remove_schedule(&self, name: &str) -> Result<(), Failure>;
    /// Starts the workflow of a schedule now.
    async fn run_schedule(&self, name: &str) -> Result<RunAt, Failure>;
    async fn backfill(&self, name: &str, from: Timestamp, until: Timestamp) -> Result<Backfilled, Failure>;

    async fn redrive(&self, id: &str) -> Result<Redriven, Failure>;
    /// Removes dead letters, and returns how many.
    async fn purge(&self, which: &PurgeRequest) -> Result<usize, Failure>;

    /// Every API key that was ever created, oldest first.
    async fn keys(&self) -> Result<Vec<ApiKeyView>, Failure>;
    async fn create_key(&self, name: &str) -> Result<MadeKey, Failure>;
    async fn revoke_key(&self, id: &str) -> Result<(), Failure>;

    /// Gives the next change this operation id instead of a new one.
    fn repeat(&mut self, operation: OperationId);

    /// Opens the data folder for work in this process, which resumes unfinished runs. With a server, does nothing.
    async fn open(&mut self, opening: Opening) -> Result<(), Failure>;
    /// How many unfinished runs this process has resumed.
    fn taken_up(&self) -> usize;
    /// Starts executing tasks. The receiver gets the reason if the store fails.
    fn work(&self) -> Option<watch::Receiver<Option<String>>>;
    /// Waits up to `grace` for running tasks, and shuts down in order.
    async fn leave(&mut self, grace: Duration);

    /// Whether another process executes the runs.
    fn is_worked_at(&self) -> bool;
    /// The command line that makes `words` act on this target.
    fn command(&self, words: &str) -> String;
}

/// A newly created API key.
#[derive(Clone, Debug)]
pub(crate) struct MadeKey {
    pub(crate) record: ApiKeyView,
    /// `None` if an earlier command with the same operation id created the key: the text is not stored.
    pub(crate) text: Option<KeyText>,
}

/// Which logged lines to read.
#[derive(Clone, Debug)]
pub(crate) struct LogsQuery {
    pub(crate) node: Option<String>,
    pub(crate) attempt: Option<u32>,
    /// Only lines of events after this one.
    pub(crate) after: u64,
}

/// A stream of the events of a run. [`Follow::next`] is cancel-safe.
#[async_trait]
pub(crate) trait Follow: Send {
    /// Waits for the next events. Empty if there will be no more.
    async fn next(&mut self) -> Result<Vec<Event>, Failure>;
}

/// Options for opening a data folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// Create the folder if it does not exist. Commands about existing runs do not.
    pub(crate) create: bool,
}

/// A run to start.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) workflow: Source,
    pub(crate) input: Value,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) concurrency: Option<Concurrency>,
    pub(crate) start: Option<Start>,
    pub(crate) priority: Option<u8>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) parallelism: Option<NonZeroU32>,
    pub(crate) labels: Labels,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Program(Arc<Program>),
    Named(String),
}

/// A run that was accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) run: RunId,
    /// The idempotency key was used before.
    pub(crate) before: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Fork {
    pub(crate) run: RunId,
    pub(crate) from: String,
    pub(crate) input: Option<Value>,
    pub(crate) edits: Vec<PatchOp>,
}

#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) ops: Vec<PatchOp>,
    pub(crate) seen: Option<u32>,
    pub(crate) author: String,
    pub(crate) reason: String,
    pub(crate) dry_run: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct NewSchedule {
    pub(crate) name: String,
    pub(crate) workflow: String,
    pub(crate) version: Option<u32>,
    pub(crate) input: Value,
    pub(crate) cron: String,
    pub(crate) time_zone: String,
    pub(crate) jitter: Duration,
    pub(crate) overlap: Overlap,
    pub(crate) catch_up: CatchUp,
    pub(crate) labels: Labels,
}
