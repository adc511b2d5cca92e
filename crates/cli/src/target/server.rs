//! A server as the target, reached over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use switchyard_api::{
    ApiKeyView, Approval, Backfilled, BulkAction, BulkPreview, BulkResult, BulkView, DeadLetterGroup,
    DeadLetterView, Event, Forked, LogPage, PatchReport, PatchView, QueuesView, Redriven, RunAt,
    RunCountView, RunPage, RunView, RunWaits, ScheduleView, Tombstone, WorkersView, WorkflowRecord,
};
use switchyard_client::{Client, Count, Events, RunsQuery, Submission};
use switchyard_core::run::{Decision, RunStatus};
use switchyard_core::{ApprovalId, OperationId, PatchId, RunId, Timestamp};
use switchyard_lang::Program;
use switchyard_runtime::{PurgeRequest, Start};
use switchyard_store::RunFilter;
use tokio::sync::watch;

use super::{Follow, Fork, LogsQuery, MadeKey, NewSchedule, Opening, Patch, Source, Taken, Target, Wanted};
use crate::errors::Failure;
use crate::settings::{self, Settings};

/// The largest pages that the API returns.
const RUNS_PAGE_MAX: usize = 200;
const EVENTS_PAGE_MAX: usize = 1_000;

pub(super) struct Server {
    client: Client,
    settings: Settings,
    /// The operation id of the next change, if it repeats an earlier one.
    repeats: Mutex<Option<OperationId>>,
}

impl Server {
    pub(super) fn new(client: Client, settings: Settings) -> Self {
        Self { client, settings, repeats: Mutex::default() }
    }

    /// The client for one change, with the operation id if it repeats an earlier one.
    fn changing(&self) -> Client {
        match self.repeats.lock().take() {
            Some(id) => self.client.with_operation_id(id),
            None => self.client.clone(),
        }
    }

    async fn page(
        &self,
        filter: &RunFilter,
        cursor: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Failure> {
        let query = RunsQuery {
            filter: Some(filter.to_string()),
            cursor,
            limit: Some(limit.min(RUNS_PAGE_MAX)),
            ..RunsQuery::default()
        };
        Ok(self.client.runs(&query).await?)
    }
}

#[async_trait]
impl Target for Server {
    async fn runs(&self, filter: &RunFilter) -> Result<RunPage, Failure> {
        let mut found = self.page(filter, filter.cursor, filter.limit).await?;
        while let Some(next) = found.next.filter(|_| found.runs.len() < filter.limit) {
            let more = self.page(filter, Some(next), filter.limit - found.runs.len()).await?;
            found.runs.extend(more.runs);
            found.next = more.next;
        }
        Ok(found)
    }

    async fn count_runs(&self, filter: &RunFilter, exact: bool) -> Result<RunCountView, Failure> {
        let count = if exact { Count::Exact } else { Count::Bounded };
        let query = RunsQuery {
            filter: Some(filter.to_string()),
            limit: Some(1),
            count: Some(count),
            ..RunsQuery::default()
        };
        let counted = self.client.runs(&query).await?.count;
        counted.ok_or_else(|| Failure::store("the server does not count runs: it is of an earlier version"))
    }

    async fn run(&self, run: RunId, at: Option<u64>) -> Result<RunView, Failure> {
        Ok(match at {
            Some(seq) => self.client.run_at(run, seq).await?,
            None => self.client.run(run).await?,
        })
    }

    async fn unfinished(&self) -> Result<Vec<RunAt>, Failure> {
        let mut unfinished = Vec::new();
        for status in RunStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
            let filter = RunFilter { statuses: vec![status], limit: usize::MAX, ..RunFilter::default() };
            unfinished.extend(self.runs(&filter).await?.runs);
        }
        unfinished.sort_by_key(|record| record.run_id);
        // A run whose status changed between two requests may be listed twice.
        unfinished.dedup_by_key(|record| record.run_id);
        Ok(unfinished.iter().map(|record| RunAt { run_id: record.run_id, status: record.status }).collect())
    }

    async fn events(&self, run: RunId, after: u64) -> Result<Vec<Event>, Failure> {
        Ok(self.client.events(run, after, EVENTS_PAGE_MAX).await?.events)
    }

    async fn logs(&self, run: RunId, query: &LogsQuery) -> Result<LogPage, Failure> {
        Ok(self.client.logs(run, query.after, query.node.as_deref(), query.attempt).await?)
    }

    async fn follow(&self, run: RunId, after: u64) -> Result<Box<dyn Follow>, Failure> {
        Ok(Box::new(Streamed(self.client.follow(run, after))))
    }

    async fn approvals(&self, run: Option<RunId>, all: bool) -> Result<Vec<Approval>, Failure> {
        Ok(self.client.approvals(run, all).await?)
    }

    async fn approval(&self, approval: &ApprovalId) -> Result<Approval, Failure> {
        Ok(self.client.approval(approval).await?)
    }

    async fn patches(&self, run: RunId) -> Result<Vec<PatchView>, Failure> {
        Ok(self.client.patches(run).await?)
    }

    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, Failure> {
        Ok(self.client.workflows().await?)
    }

    async fn definition(&self, name: &str, version: Option<u32>) -> Result<Value, Failure> {
        Ok(self.client.workflow(name, version).await?.source)
    }

    async fn schedules(&self) -> Result<Vec<ScheduleView>, Failure> {
        Ok(self.client.schedules().await?)
    }

    async fn schedule(&self, name: &str, upcoming: usize, starts: usize) -> Result<ScheduleView, Failure> {
        Ok(self.client.schedule(name, upcoming, starts).await?)
    }

    async fn queues(&self) -> Result<QueuesView, Failure> {
        Ok(self.client.queues().await?)
    }

    async fn workers(&self) -> Result<WorkersView, Failure> {
        Ok(self.client.workers().await?)
    }

    async fn waits(&self, run: RunId) -> Result<RunWaits, Failure> {
        Ok(self.client.waits(run).await?)
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetterView>, Failure> {
        Ok(self.client.dead_letters(limit).await?)
    }

    async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, Failure> {
        Ok(self.client.dead_letter_groups(limit).await?)
    }

    async fn dead_letter(&self, id: &str) -> Result<DeadLetterView, Failure> {
        Ok(self.client.dead_letter(id).await?)
    }

    async fn submit(&self, wanted: &Wanted) -> Result<Taken, Failure> {
        let input = wanted.input.clone();
        let mut submission = match &wanted.workflow {
            Source::Program(program) => {
                Submission::definition(serde_json::to_value(&*program.definition)?, input)
            }
            Source::Named(name) => Submission::named(name, input),
        };
        if let Some(key) = &wanted.idempotency_key {
            submission = submission.idempotency_key(key);
        }
        if let Some(concurrency) = &wanted.concurrency
            && let Some(limit) = std::num::NonZeroU32::new(concurrency.limit)
        {
            submission = submission.concurrency(&concurrency.key, limit);
        }
        submission = match wanted.start {
            Some(Start::At(at)) => submission.start_at(at),
            Some(Start::After(delay)) => submission.delay(delay),
            None => submission,
        };
        if let Some(priority) = wanted.priority {
            submission = submission.priority(priority);
        }
        if let Some(deadline) = wanted.deadline {
            submission = submission.deadline(deadline);
        }
        for (key, value) in &wanted.labels {
            submission = submission.label(key, value);
        }
        if let Some(parallelism) = wanted.parallelism {
            submission = submission.parallelism(parallelism);
        }
        let (run, before) = self.changing().submit_once(&submission).await?;
        // A key that the client generated was used before only by a try of this command whose response was lost.
        Ok(Taken { run: run.run_id, before: before && wanted.idempotency_key.is_some() })
    }

    async fn cancel(&self, run: RunId, reason: &str, compensate: bool, now: bool) -> Result<RunAt, Failure> {
        Ok(self.changing().cancel(run, &settings::user(), reason, compensate, now).await?)
    }

    async fn pause(&self, run: RunId) -> Result<RunAt, Failure> {
        Ok(self.changing().pause(run, &settings::user()).await?)
    }

    async fn resume(&self, run: RunId) -> Result<RunAt, Failure> {
        Ok(self.changing().resume(run, &settings::user()).await?)
    }

    async fn signal(&self, run: RunId, name: &str, payload: &Value) -> Result<RunAt, Failure> {
        Ok(self.changing().signal(run, name, payload).await?)
    }

    async fn retry(&self, run: RunId) -> Result<RunAt, Failure> {
        Ok(self.changing().retry(run, &settings::user()).await?)
    }

    async fn fork(&self, fork: Fork) -> Result<Forked, Failure> {
        let Fork { run, from, input, edits } = fork;
        Ok(self.changing().fork(run, &switchyard_client::Fork { from, input, edits }).await?)
    }

    async fn delete_run(&self, run: RunId, reason: &str) -> Result<Tombstone, Failure> {
        Ok(self.changing().delete_run(run, &settings::user(), reason).await?)
    }

    async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, Failure> {
        Ok(self.client.tombstones(limit).await?)
    }

    async fn preview_bulk(&self, action: &BulkAction, filter: &RunFilter) -> Result<BulkPreview, Failure> {
        Ok(self.client.preview_bulk(action, &filter.to_string()).await?)
    }

    async fn start_bulk(&self, action: &BulkAction, filter: &RunFilter) -> Result<BulkView, Failure> {
        Ok(self.changing().start_bulk(action, &filter.to_string(), &settings::user()).await?)
    }

    async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkView>, Failure> {
        Ok(self.client.bulk_jobs(limit).await?)
    }

    async fn bulk_job(&self, id: &str) -> Result<BulkView, Failure> {
        Ok(self.client.bulk_job(id).await?)
    }

    async fn bulk_results(&self, id: &str, limit: usize) -> Result<Vec<BulkResult>, Failure> {
        Ok(self.client.bulk_results(id, None, limit).await?.results)
    }

    async fn stop_bulk(&self, id: &str) -> Result<BulkView, Failure> {
        Ok(self.changing().stop_bulk(id).await?)
    }

    async fn decide(
        &self,
        approval: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: &str,
    ) -> Result<RunAt, Failure> {
        Ok(self.changing().decide(approval, decision, by, comment).await?)
    }

    async fn patch(&self, run: RunId, patch: Patch) -> Result<PatchReport, Failure> {
        let Patch { ops, seen, author, reason, dry_run } = patch;
        let patch = switchyard_client::Patch { ops, seen, by: Some(author), reason, dry_run };
        Ok(self.changing().patch(run, &patch).await?)
    }

    async fn undo_patch(
        &self,
        run: RunId,
        patch: &PatchId,
        author: &str,
        dry_run: bool,
    ) -> Result<PatchReport, Failure> {
        Ok(self.changing().undo_patch(run, patch, author, dry_run).await?)
    }

    async fn register(&self, program: &Arc<Program>) -> Result<WorkflowRecord, Failure> {
        Ok(self.changing().register_workflow(&serde_json::to_value(&*program.definition)?).await?)
    }

    async fn put_schedule(&self, new: NewSchedule) -> Result<ScheduleView, Failure> {
        let schedule = switchyard_client::NewSchedule {
            workflow: new.workflow,
            version: new.version,
            input: new.input,
            cron: new.cron,
            time_zone: new.time_zone,
            jitter: new.jitter,
            overlap: new.overlap,
            catch_up: new.catch_up,
            paused: false,
            labels: new.labels,
        };
        Ok(self.changing().put_schedule(&new.name, &schedule).await?)
    }

    async fn pause_schedule(&self, name: &str, paused: bool) -> Result<ScheduleView, Failure> {
        Ok(self.changing().pause_schedule(name, paused).await?)
    }

    async fn remove_schedule(&self, name: &str) -> Result<(), Failure> {
        Ok(self.changing().remove_schedule(name).await?)
    }

    async fn run_schedule(&self, name: &str) -> Result<RunAt, Failure> {
        Ok(self.changing().run_schedule(name).await?)
    }

    async fn backfill(&self, name: &str, from: Timestamp, until: Timestamp) -> Result<Backfilled, Failure> {
        Ok(self.changing().backfill(name, from, until).await?)
    }

    async fn redrive(&self, id: &str) -> Result<Redriven, Failure> {
        Ok(self.changing().redrive(id, &settings::user()).await?)
    }

    async fn purge(&self, which: &PurgeRequest) -> Result<usize, Failure> {
        Ok(match which {
            PurgeRequest::One(id) => {
                self.changing().remove_dead_letter(id).await?;
                1
            }
            PurgeRequest::OlderThan(age) => self.changing().purge_dead_letters(Some(*age)).await?,
            PurgeRequest::All => self.changing().purge_dead_letters(None).await?,
        })
    }

    async fn keys(&self) -> Result<Vec<ApiKeyView>, Failure> {
        Ok(self.client.keys().await?)
    }

    async fn create_key(&self, name: &str) -> Result<MadeKey, Failure> {
        let made = self.changing().create_key(name).await?;
        Ok(MadeKey { record: made.record, text: Some(made.text) })
    }

    async fn revoke_key(&self, id: &str) -> Result<(), Failure> {
        self.changing().revoke_key(id).await?;
        Ok(())
    }

    fn repeat(&mut self, operation: OperationId) {
        *self.repeats.get_mut() = Some(operation);
    }

    async fn open(&mut self, _: Opening) -> Result<(), Failure> {
        Ok(())
    }

    fn taken_up(&self) -> usize {
        0
    }

    fn work(&self) -> Option<watch::Receiver<Option<String>>> {
        None
    }

    async fn leave(&mut self, _: Duration) {}

    fn is_worked_at(&self) -> bool {
        true
    }

    fn command(&self, words: &str) -> String {
        if self.settings.loaded().is_default("server") {
            return format!("switchyard {words}");
        }
        format!("switchyard {words} --server {}", self.settings.server.as_str())
    }
}

/// Follows a run through the server's event stream, which ends with the run.
struct Streamed(Events);

#[async_trait]
impl Follow for Streamed {
    async fn next(&mut self) -> Result<Vec<Event>, Failure> {
        Ok(self.0.next().await?.into_iter().collect())
    }
}
