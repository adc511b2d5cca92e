//! A data folder as the target: opened exclusively to change something, or read beside another process.

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
use switchyard_core::in_flight::Acceptance;
use switchyard_core::run::Decision;
use switchyard_core::schedule::Schedule;
use switchyard_core::{ApprovalId, OperationId, PatchId, Payload, RunId, Timestamp};
use switchyard_host::embedded::Embedded;
use switchyard_lang::Program;
use switchyard_runtime::{
    ApiKeys, Engine, EngineError, History, LogFilter, PatchRequest, Principal, PurgeRequest, Submission, ids,
};
use switchyard_store::{ApprovalFilter, ApprovalStatus, Clock, RunFilter, StoreError, SystemClock};
use tokio::sync::watch;

use super::{Follow, Fork, LogsQuery, MadeKey, NewSchedule, Opening, Patch, Source, Taken, Target, Wanted};
use crate::errors::Failure;
use crate::settings::{Settings, principal};
use crate::{drive, store};

/// Events per page, so that a long history is not held in memory at once.
const PIECE: usize = 1_000;

/// How often to poll a history that another process writes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) struct Folder {
    settings: Settings,
    /// The store, once the folder is opened for work.
    store: Option<Embedded>,
    /// The operation id of the next change, if it repeats an earlier one.
    repeats: Mutex<Option<OperationId>>,
}

impl Folder {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, store: None, repeats: Mutex::default() }
    }

    /// The operation id of one change.
    fn operation(&self) -> OperationId {
        self.repeats.lock().take().unwrap_or_else(ids::operation_id)
    }

    fn history(&self) -> Result<History, Failure> {
        match &self.store {
            Some(store) => Ok(store.engine().history().clone()),
            None => store::peek(&self.settings),
        }
    }

    /// Makes a change in the folder, which is opened for it unless it is open already.
    async fn act<T>(&self, act: impl AsyncFnOnce(&Engine) -> Result<T, EngineError>) -> Result<T, Failure> {
        match &self.store {
            Some(store) => Ok(act(store.engine()).await?),
            None => store::once(&self.settings, act).await,
        }
    }

    /// Sends a command to a run, and returns the run's status afterwards.
    async fn command(
        &self,
        run: RunId,
        act: impl AsyncFnOnce(&Engine) -> Result<(), EngineError>,
    ) -> Result<RunAt, Failure> {
        self.act(async |engine| {
            act(engine).await?;
            standing(engine, run).await
        })
        .await
    }
}

async fn standing(engine: &Engine, run: RunId) -> Result<RunAt, EngineError> {
    Ok(RunAt { run_id: run, status: engine.state(run).await?.status() })
}

#[async_trait]
impl Target for Folder {
    async fn runs(&self, filter: &RunFilter) -> Result<RunPage, Failure> {
        let page = self.history()?.runs(filter).await?;
        Ok(RunPage { runs: page.items, next: page.next, count: None })
    }

    async fn count_runs(&self, filter: &RunFilter, exact: bool) -> Result<RunCountView, Failure> {
        Ok(self.history()?.count_runs(filter, exact).await?.into())
    }

    async fn run(&self, run: RunId, at: Option<u64>) -> Result<RunView, Failure> {
        if let (Some(store), None) = (&self.store, at) {
            let engine = store.engine();
            return Ok(engine.view(&engine.state(run).await?).await?);
        }
        let history = self.history()?;
        Ok(history.view(&history.state(run, at).await?).await?)
    }

    async fn unfinished(&self) -> Result<Vec<RunAt>, Failure> {
        Ok(self.history()?.unfinished_roots().await?)
    }

    async fn events(&self, run: RunId, after: u64) -> Result<Vec<Event>, Failure> {
        let history = self.history()?;
        if after == 0 {
            history.run(run).await?;
        }
        shown(history.events_page(run, after, PIECE).await?)
    }

    async fn logs(&self, run: RunId, query: &LogsQuery) -> Result<LogPage, Failure> {
        let filter = LogFilter { node: query.node.clone(), attempt: query.attempt };
        Ok(self.history()?.logs(run, query.after, &filter, PIECE).await?)
    }

    async fn follow(&self, run: RunId, after: u64) -> Result<Box<dyn Follow>, Failure> {
        Ok(match &self.store {
            Some(store) => Box::new(Told(store.engine().follow(run, after))),
            None => Box::new(Looking { history: self.history()?, run, after }),
        })
    }

    async fn approvals(&self, run: Option<RunId>, all: bool) -> Result<Vec<Approval>, Failure> {
        let filter = ApprovalFilter { run, status: (!all).then_some(ApprovalStatus::Pending) };
        let records = self.history()?.approvals(&filter).await?;
        Ok(records.into_iter().map(Approval::listed).collect())
    }

    async fn approval(&self, approval: &ApprovalId) -> Result<Approval, Failure> {
        Ok(self.history()?.approval(approval).await?)
    }

    async fn patches(&self, run: RunId) -> Result<Vec<PatchView>, Failure> {
        let history = self.history()?;
        let state = history.state(run, None).await?;
        Ok(history.patches(&state).await?)
    }

    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, Failure> {
        Ok(self.history()?.workflows().await?)
    }

    async fn definition(&self, name: &str, version: Option<u32>) -> Result<Value, Failure> {
        let history = self.history()?;
        let record = history.workflow(name, version).await?;
        let text = history.definition(record.definition).await?;
        Ok(serde_json::from_str(&text).map_err(|error| StoreError::Corrupt(error.to_string()))?)
    }

    async fn schedules(&self) -> Result<Vec<ScheduleView>, Failure> {
        let records = self.history()?.schedules().await?;
        Ok(records.into_iter().map(ScheduleView::listed).collect())
    }

    async fn schedule(&self, name: &str, upcoming: usize, starts: usize) -> Result<ScheduleView, Failure> {
        let history = self.history()?;
        Ok(history.schedule_shown(name, SystemClock.now(), upcoming, starts).await?)
    }

    async fn queues(&self) -> Result<QueuesView, Failure> {
        self.act(async |engine| engine.queues().await).await
    }

    async fn workers(&self) -> Result<WorkersView, Failure> {
        match &self.store {
            Some(store) => Ok(store.engine().workers().await?),
            // No process works in this folder, or this command cannot reach it.
            None => Ok(WorkersView { workers: Vec::new() }),
        }
    }

    async fn waits(&self, run: RunId) -> Result<RunWaits, Failure> {
        match &self.store {
            Some(store) => Ok(store.engine().waits(run).await?),
            None => Ok(self.history()?.waits(run).await?),
        }
    }

    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetterView>, Failure> {
        Ok(self.history()?.dead_letters(limit).await?)
    }

    async fn dead_letter_groups(&self, limit: usize) -> Result<Vec<DeadLetterGroup>, Failure> {
        Ok(self.history()?.dead_letter_groups(limit).await?)
    }

    async fn dead_letter(&self, id: &str) -> Result<DeadLetterView, Failure> {
        Ok(self.history()?.dead_letter(id).await?)
    }

    async fn submit(&self, wanted: &Wanted) -> Result<Taken, Failure> {
        self.act(async |engine| {
            let (program, workflow_version) = resolve(engine, &wanted.workflow).await?;
            let submission = Submission {
                workflow_version,
                idempotency_key: wanted.idempotency_key.clone(),
                concurrency: wanted.concurrency.clone(),
                start: wanted.start,
                priority: wanted.priority,
                deadline: wanted.deadline,
                parallelism: wanted.parallelism.map(std::num::NonZeroU32::get),
                labels: wanted.labels.clone(),
                ..Submission::new(program, wanted.input.clone())
            };
            Ok(match engine.submit(&principal(), submission).await? {
                Acceptance::New(run) => Taken { run, before: false },
                Acceptance::Existing(run) => Taken { run, before: true },
            })
        })
        .await
    }

    async fn cancel(&self, run: RunId, reason: &str, compensate: bool, now: bool) -> Result<RunAt, Failure> {
        let (id, by) = (self.operation(), principal());
        self.command(run, async |engine| engine.cancel(&by, run, &id, reason, compensate, now).await).await
    }

    async fn pause(&self, run: RunId) -> Result<RunAt, Failure> {
        self.command(run, async |engine| engine.pause(&principal(), run, &self.operation()).await).await
    }

    async fn resume(&self, run: RunId) -> Result<RunAt, Failure> {
        self.command(run, async |engine| engine.resume(&principal(), run, &self.operation()).await).await
    }

    async fn signal(&self, run: RunId, name: &str, payload: &Value) -> Result<RunAt, Failure> {
        self.command(run, async |engine| {
            engine.signal(&principal(), run, &self.operation(), name, payload).await
        })
        .await
    }

    async fn retry(&self, run: RunId) -> Result<RunAt, Failure> {
        self.command(run, async |engine| engine.retry(&principal(), run, &self.operation()).await).await
    }

    async fn fork(&self, fork: Fork) -> Result<Forked, Failure> {
        let Fork { run, from, input, edits } = fork;
        self.act(async |engine| {
            let fork = switchyard_runtime::Fork {
                run,
                operation: self.operation(),
                from: from.into(),
                input,
                edits,
            };
            let forked = engine.fork(&principal(), fork).await?;
            let run = standing(engine, forked.run).await?;
            Ok(Forked { run, kept: forked.kept, diff: forked.diff })
        })
        .await
    }

    async fn delete_run(&self, run: RunId, reason: &str) -> Result<Tombstone, Failure> {
        let (id, by) = (self.operation(), principal());
        self.act(async |engine| engine.delete_run(&by, run, &id, reason).await).await
    }

    async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, Failure> {
        Ok(self.history()?.tombstones(limit).await?)
    }

    async fn preview_bulk(&self, _: &BulkAction, filter: &RunFilter) -> Result<BulkPreview, Failure> {
        Ok(self.history()?.bulk_preview(filter).await?)
    }

    async fn start_bulk(&self, action: &BulkAction, filter: &RunFilter) -> Result<BulkView, Failure> {
        let (id, by) = (self.operation(), principal());
        self.act(async |engine| {
            let job = engine.start_bulk(&by, &id, action.clone(), filter).await?;
            // No background duty runs in this process, so the command completes the job itself.
            while engine.work_bulk().await? {}
            engine.history().bulk_job(&job.job.id).await
        })
        .await
    }

    async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkView>, Failure> {
        Ok(self.history()?.bulk_jobs(limit).await?)
    }

    async fn bulk_job(&self, id: &str) -> Result<BulkView, Failure> {
        Ok(self.history()?.bulk_job(id).await?)
    }

    async fn bulk_results(&self, id: &str, limit: usize) -> Result<Vec<BulkResult>, Failure> {
        Ok(self.history()?.bulk_results(id, None, limit).await?)
    }

    async fn stop_bulk(&self, id: &str) -> Result<BulkView, Failure> {
        let (operation, by) = (self.operation(), principal());
        self.act(async |engine| engine.stop_bulk(&by, &operation, id).await).await
    }

    async fn decide(
        &self,
        approval: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: &str,
    ) -> Result<RunAt, Failure> {
        self.act(async |engine| {
            let run =
                engine.decide(&Principal::local(by), approval, &self.operation(), decision, comment).await?;
            standing(engine, run).await
        })
        .await
    }

    async fn patch(&self, run: RunId, patch: Patch) -> Result<PatchReport, Failure> {
        let Patch { ops, seen, author, reason, dry_run } = patch;
        let (author, operation) = (Principal::local(author), self.operation());
        let request = PatchRequest { run, ops, seen, operation, reason: reason.into(), dry_run };
        self.act(async |engine| engine.patch(&author, request).await).await
    }

    async fn undo_patch(
        &self,
        run: RunId,
        patch: &PatchId,
        author: &str,
        dry_run: bool,
    ) -> Result<PatchReport, Failure> {
        let (author, id) = (Principal::local(author), self.operation());
        self.act(async |engine| engine.undo_patch(&author, run, patch, id, dry_run).await).await
    }

    async fn register(&self, program: &Arc<Program>) -> Result<WorkflowRecord, Failure> {
        let store = store::open(&self.settings).await?;
        let record = store.engine().register_workflow(&principal(), &self.operation(), program).await;
        store.shut_down(Duration::ZERO).await;
        Ok(record?)
    }

    async fn put_schedule(&self, new: NewSchedule) -> Result<ScheduleView, Failure> {
        let schedule = Schedule {
            name: new.name.into(),
            workflow: new.workflow.into(),
            version: new.version,
            input: Payload::from_value(&new.input),
            cron: new.cron.into(),
            time_zone: new.time_zone.into(),
            jitter: new.jitter,
            overlap: new.overlap,
            catch_up: new.catch_up,
            paused: false,
            labels: new.labels,
        };
        let record = self
            .act(async |engine| engine.put_schedule(&principal(), &self.operation(), schedule).await)
            .await?;
        Ok(ScheduleView::of(record, new.input))
    }

    async fn pause_schedule(&self, name: &str, paused: bool) -> Result<ScheduleView, Failure> {
        let record = self
            .act(async |engine| engine.pause_schedule(&principal(), &self.operation(), name, paused).await)
            .await?;
        Ok(self.history()?.schedule_view(record).await?)
    }

    async fn remove_schedule(&self, name: &str) -> Result<(), Failure> {
        self.act(async |engine| engine.remove_schedule(&principal(), &self.operation(), name).await).await
    }

    async fn run_schedule(&self, name: &str) -> Result<RunAt, Failure> {
        self.act(async |engine| {
            let run = engine.run_schedule(&principal(), &self.operation(), name).await?;
            standing(engine, run).await
        })
        .await
    }

    async fn backfill(&self, name: &str, from: Timestamp, until: Timestamp) -> Result<Backfilled, Failure> {
        self.act(async |engine| engine.backfill(&principal(), &self.operation(), name, from, until).await)
            .await
    }

    async fn redrive(&self, id: &str) -> Result<Redriven, Failure> {
        self.act(async |engine| {
            let run = match engine.redrive(&principal(), id, &self.operation()).await? {
                Some(run) => Some(standing(engine, run).await?),
                None => None,
            };
            Ok(Redriven { id: id.into(), run })
        })
        .await
    }

    async fn purge(&self, which: &PurgeRequest) -> Result<usize, Failure> {
        self.act(async |engine| engine.purge(&principal(), &self.operation(), which).await).await
    }

    async fn keys(&self) -> Result<Vec<ApiKeyView>, Failure> {
        let keys = store::existing_keys(&self.settings)?.all().await?;
        Ok(keys.into_iter().map(Into::into).collect())
    }

    async fn create_key(&self, name: &str) -> Result<MadeKey, Failure> {
        create_key(&switchyard_host::embedded::keys(&self.settings.data)?, &self.operation(), name).await
    }

    async fn revoke_key(&self, id: &str) -> Result<(), Failure> {
        revoke_key(&store::existing_keys(&self.settings)?, &self.operation(), id).await
    }

    fn repeat(&mut self, operation: OperationId) {
        *self.repeats.get_mut() = Some(operation);
    }

    async fn open(&mut self, opening: Opening) -> Result<(), Failure> {
        let store = match opening.create {
            true => store::open(&self.settings).await?,
            false => store::open_existing(&self.settings).await?,
        };
        drive::tell_damaged(store.recovered());
        self.store = Some(store);
        Ok(())
    }

    fn taken_up(&self) -> usize {
        self.store.as_ref().map_or(0, |store| store.recovered().runs)
    }

    fn work(&self) -> Option<watch::Receiver<Option<String>>> {
        self.store.as_ref().map(Embedded::work)
    }

    async fn leave(&mut self, grace: Duration) {
        if let Some(store) = self.store.take() {
            store.shut_down(grace).await;
        }
    }

    fn is_worked_at(&self) -> bool {
        false
    }

    fn command(&self, words: &str) -> String {
        self.settings.command(words)
    }
}

/// Creates a key directly in the archive, without a server.
pub(crate) async fn create_key(
    keys: &ApiKeys,
    operation: &OperationId,
    name: &str,
) -> Result<MadeKey, Failure> {
    let made = keys.create(&principal(), operation, name, None).await?;
    Ok(MadeKey { record: made.record.into(), text: made.text })
}

/// Revokes a key directly in the archive, without a server.
pub(crate) async fn revoke_key(keys: &ApiKeys, operation: &OperationId, id: &str) -> Result<(), Failure> {
    keys.revoke(&principal(), operation, id).await?;
    Ok(())
}

async fn resolve(engine: &Engine, source: &Source) -> Result<(Arc<Program>, Option<u32>), EngineError> {
    match source {
        Source::Program(program) => Ok((program.clone(), None)),
        Source::Named(name) => {
            let (program, version) = engine.registered_program(name, None).await?;
            Ok((program, Some(version)))
        }
    }
}

fn shown(events: Vec<switchyard_core::run::Event>) -> Result<Vec<Event>, Failure> {
    events.iter().map(|event| Event::of(event).map_err(Failure::from)).collect()
}

/// Follows a run through the notifications of this process's store.
struct Told(switchyard_runtime::Follow);

#[async_trait]
impl Follow for Told {
    async fn next(&mut self) -> Result<Vec<Event>, Failure> {
        shown(self.0.next().await?)
    }
}

/// Follows a run by polling its history, which another process may write.
struct Looking {
    history: History,
    run: RunId,
    after: u64,
}

#[async_trait]
impl Follow for Looking {
    async fn next(&mut self) -> Result<Vec<Event>, Failure> {
        loop {
            let events = self.history.events_page(self.run, self.after, PIECE).await?;
            if let Some(last) = events.last() {
                self.after = last.seq;
                return shown(events);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
