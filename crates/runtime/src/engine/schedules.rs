//! Schedules: stored, started at their ticks, started by hand, backfilled.
//!
//! A start is a submission whose idempotency key names the tick. So a tick is started once, even if several servers
//! see it, a server crashed between starting and recording it, or a backfill covers it again.

use std::sync::Arc;

use switchyard_api::{Backfilled, ScheduleView, StartView, TickRun};
use switchyard_core::in_flight::Acceptance;
use switchyard_core::labels::check_labels;
use switchyard_core::run::{Concurrency, Refusal};
use switchyard_core::schedule::{Overlap, Schedule, TICKS_MAX, Timetable};
use switchyard_core::{OperationId, RunId, Timestamp};
use switchyard_store::{Mutation, ScheduleRecord, ScheduleStart, StartOutcome, StoreError};

use super::{Engine, EngineError, History, Submission};
use crate::Principal;
use crate::evaluate::prepare_input;

/// The longest error of a failed start, in characters.
const ERROR_CHARS_MAX: usize = 2_000;

/// The result of one pass over the schedules.
#[derive(Debug, Default)]
pub struct Pass {
    pub started: Vec<RunId>,
    /// Schedules that could not be started, and why. Later passes try again.
    pub failed: Vec<(Arc<str>, EngineError)>,
    /// When the next start is due.
    pub next: Option<Timestamp>,
}

impl History {
    /// Every schedule, ordered by name.
    pub async fn schedules(&self) -> Result<Vec<ScheduleRecord>, EngineError> {
        Ok(self.archive.schedules().await?)
    }

    pub async fn schedule(&self, name: &str) -> Result<ScheduleRecord, EngineError> {
        let found = self.archive.schedule(name).await?;
        found.ok_or_else(|| StoreError::unknown("schedule", name).into())
    }

    /// A schedule as clients see it: its definition, its next tick and its newest run.
    pub async fn schedule_view(&self, record: ScheduleRecord) -> Result<ScheduleView, EngineError> {
        let input = self.payloads().show(&record.schedule.input).await?;
        Ok(ScheduleView::of(record, input))
    }

    /// A schedule with its next starts and the outcomes of its newest ticks.
    pub async fn schedule_shown(
        &self,
        name: &str,
        now: Timestamp,
        upcoming: usize,
        starts: usize,
    ) -> Result<ScheduleView, EngineError> {
        let record = self.schedule(name).await?;
        let timetable = record.schedule.timetable().map_err(|bad| StoreError::Corrupt(bad.to_string()))?;
        let ticks = std::iter::successors(timetable.next_after(now), |tick| timetable.next_after(*tick));
        let upcoming = ticks.take(upcoming).map(|tick| record.schedule.start_at(tick).to_string()).collect();
        let starts = self.archive.schedule_starts(name, starts).await?.into_iter().map(StartView::from);
        let view = self.schedule_view(record).await?;
        Ok(ScheduleView { upcoming: Some(upcoming), starts: Some(starts.collect()), ..view })
    }
}

impl Engine {
    /// Stores a schedule, which starts at its next tick.
    pub async fn put_schedule(
        &self,
        by: &Principal,
        operation: &OperationId,
        schedule: Schedule,
    ) -> Result<ScheduleRecord, EngineError> {
        let request = self.asks(by, operation, "put_schedule", &schedule)?;
        let schedule = &schedule;
        let outcome = self.mutate(&request, || async move {
            read(schedule)?;
            check_labels(&schedule.labels).map_err(|bad| EngineError::BadRequest(bad.to_string()))?;
            // The caller gets the error now if the schedule cannot start, not at its first tick.
            let (program, _) = self.scheduled_workflow(schedule).await?;
            let input = self.payloads.load(&schedule.input).await?;
            prepare_input(&program, input).await.map_err(EngineError::Invalid)?;
            self.scheduling(schedule.clone()).await
        });
        Ok(outcome.await?.schedule()?)
    }

    /// The schedule with its next tick and, if it had one, its newest run.
    async fn scheduling(&self, schedule: Schedule) -> Result<Mutation, EngineError> {
        let timetable = read(&schedule)?;
        let next_at = timetable.next_after(self.clock.now());
        if next_at.is_none() {
            return Err(EngineError::BadRequest(format!("`{}` never comes", schedule.cron)));
        }
        let last_run = self.archive.schedule(&schedule.name).await?.and_then(|record| record.last_run);
        Ok(Mutation::PutSchedule(Box::new(ScheduleRecord { schedule, next_at, last_run })))
    }

    /// Pauses a schedule. Ticks that pass meanwhile are not made up for.
    pub async fn pause_schedule(
        &self,
        by: &Principal,
        operation: &OperationId,
        name: &str,
        paused: bool,
    ) -> Result<ScheduleRecord, EngineError> {
        let request = self.asks(by, operation, "pause_schedule", &(name, paused))?;
        let outcome = self.mutate(&request, || async move {
            let record = self.history.schedule(name).await?;
            self.scheduling(Schedule { paused, ..record.schedule }).await
        });
        Ok(outcome.await?.schedule()?)
    }

    pub async fn remove_schedule(
        &self,
        by: &Principal,
        operation: &OperationId,
        name: &str,
    ) -> Result<(), EngineError> {
        let request = self.asks(by, operation, "remove_schedule", &name)?;
        let remove = || async { Ok(Mutation::RemoveSchedule { name: name.to_owned() }) };
        match self.mutate(&request, remove).await?.changed()? {
            true => Ok(()),
            false => Err(StoreError::unknown("schedule", name).into()),
        }
    }

    /// Starts a schedule's workflow now, with its input, regardless of its overlap policy and of a pause. If the
    /// schedule queues its runs, this run is queued as well.
    pub async fn run_schedule(
        &self,
        by: &Principal,
        operation: &OperationId,
        name: &str,
    ) -> Result<RunId, EngineError> {
        let request = self.asks(by, operation, "run_schedule", &name)?;
        let tick = request.at;
        let outcome = self.mutate(&request, || async move {
            let record = self.history.schedule(name).await?;
            let key = format!("schedule/{name}/now/{operation}");
            let run = self.start(by, &record.schedule, tick, key).await?.run();
            self.note(name, tick, Some(by), StartOutcome::Started(run)).await?;
            // The next tick stays; only the newest run changes.
            self.archive.advance_schedule(name, record.next_at, record.next_at, Some(run)).await?;
            Ok(Mutation::Note(serde_json::json!({ "run_id": run })))
        });
        let note = outcome.await?.note()?;
        let run = note["run_id"].as_str().and_then(|run| run.parse().ok());
        run.ok_or_else(|| StoreError::Corrupt(format!("a note on the start of a schedule: {note}")).into())
    }

    /// Starts the ticks of a time range, in the past or the future, that were not started yet. At most [`TICKS_MAX`].
    pub async fn backfill(
        &self,
        by: &Principal,
        operation: &OperationId,
        name: &str,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Backfilled, EngineError> {
        let request = self.asks(by, operation, "backfill", &(name, from, until))?;
        // A tick is started once, so all of this may be repeated; the note keeps the first result.
        let outcome = self.mutate(&request, || async move {
            let backfilled = self.start_ticks(by, name, from, until).await?;
            let note = serde_json::to_value(backfilled);
            Ok(Mutation::Note(note.map_err(|error| StoreError::Corrupt(error.to_string()))?))
        });
        let note = serde_json::from_value(outcome.await?.note()?);
        Ok(note.map_err(|error| StoreError::Corrupt(format!("a note on a backfill: {error}")))?)
    }

    async fn start_ticks(
        &self,
        by: &Principal,
        name: &str,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Backfilled, EngineError> {
        let schedule = self.history.schedule(name).await?.schedule;
        let timetable = read(&schedule)?;
        let mut runs = Vec::new();
        for tick in timetable.between(from, until) {
            let acceptance = self.start_tick(by, &schedule, tick).await?;
            let started = matches!(acceptance, Acceptance::New(_));
            runs.push(TickRun { tick, run_id: acceptance.run(), started });
        }
        let full = runs.last().filter(|_| runs.len() == TICKS_MAX);
        let next = full.and_then(|last| timetable.next_after(last.tick)).filter(|tick| *tick <= until);
        Ok(Backfilled { runs, next })
    }

    /// One pass of the schedule duty.
    pub async fn start_due(&self) -> Result<Pass, EngineError> {
        let mut pass = Pass::default();
        for record in self.archive.schedules().await? {
            let name = record.schedule.name.clone();
            match self.start_due_of(record, &mut pass).await {
                Ok(next) => pass.next = [pass.next, next].into_iter().flatten().min(),
                Err(error) => pass.failed.push((name, error)),
            }
        }
        Ok(pass)
    }

    async fn start_due_of(
        &self,
        record: ScheduleRecord,
        pass: &mut Pass,
    ) -> Result<Option<Timestamp>, EngineError> {
        let ScheduleRecord { schedule, next_at: Some(next), mut last_run } = record else { return Ok(None) };
        if schedule.paused {
            return Ok(None);
        }
        let due = schedule.due(&read(&schedule)?, next, self.clock.now());
        for tick in &due.start {
            if schedule.overlap == Overlap::Skip && self.is_under_way(last_run).await? {
                tracing::info!(schedule = %schedule.name, %tick, "left out: the run before is still under way");
                self.note(&schedule.name, *tick, None, StartOutcome::Skipped).await?;
                continue;
            }
            let started = self.start_and_note(&schedule, *tick).await?;
            if let Acceptance::New(_) = started {
                self.observe.metrics().schedule_started();
            }
            let run = started.run();
            last_run = Some(run);
            pass.started.push(run);
        }
        if due.next != Some(next) {
            self.archive.advance_schedule(&schedule.name, Some(next), due.next, last_run).await?;
        }
        Ok(due.next.map(|tick| schedule.start_at(tick)))
    }

    /// Starts a tick and records its outcome, so that the schedule's history shows a failed start.
    async fn start_and_note(&self, schedule: &Schedule, tick: Timestamp) -> Result<Acceptance, EngineError> {
        let started = self.start_tick(&Principal::switchyard(), schedule, tick).await;
        let outcome = match &started {
            Ok(acceptance) => StartOutcome::Started(acceptance.run()),
            Err(error) => {
                let shown: String = error.to_string().chars().take(ERROR_CHARS_MAX).collect();
                StartOutcome::Failed(shown.into())
            }
        };
        let noted = self.note(&schedule.name, tick, None, outcome).await;
        // If both fail, the error of the start is more useful.
        started.and_then(|acceptance| noted.map(|()| acceptance))
    }

    async fn note(
        &self,
        schedule: &str,
        tick: Timestamp,
        by: Option<&Principal>,
        outcome: StartOutcome,
    ) -> Result<(), EngineError> {
        let by = by.map(|by| by.name().clone());
        let start = ScheduleStart { tick, at: self.clock.now(), tries: 1, by, outcome };
        Ok(self.archive.note_start(schedule, start).await?)
    }

    async fn is_under_way(&self, run: Option<RunId>) -> Result<bool, EngineError> {
        match run {
            Some(run) => Ok(self.hot.in_flight(run).await?),
            None => Ok(false),
        }
    }

    async fn start_tick(
        &self,
        by: &Principal,
        schedule: &Schedule,
        tick: Timestamp,
    ) -> Result<Acceptance, EngineError> {
        match self.start(by, schedule, tick, schedule.key_of(tick)).await {
            // The tick was started before, with an older version of the workflow or of the schedule.
            Err(EngineError::Refused(Refusal::KeyReused { run, .. })) => Ok(Acceptance::Existing(run)),
            other => other,
        }
    }

    /// Submits a run for a tick, once for its key.
    async fn start(
        &self,
        by: &Principal,
        schedule: &Schedule,
        tick: Timestamp,
        key: String,
    ) -> Result<Acceptance, EngineError> {
        let (program, version) = self.scheduled_workflow(schedule).await?;
        let concurrency = (schedule.overlap == Overlap::Queue)
            .then(|| Concurrency { key: format!("schedule/{}", schedule.name).into(), limit: 1 });
        let submission = Submission {
            workflow_version: Some(version),
            idempotency_key: Some(key),
            concurrency,
            labels: schedule.labels.clone(),
            schedule: Some(schedule.name.clone()),
            scheduled_at: Some(tick),
            ..Submission::new(program, self.payloads.load(&schedule.input).await?)
        };
        self.submit(by, submission).await
    }

    async fn scheduled_workflow(
        &self,
        schedule: &Schedule,
    ) -> Result<(Arc<switchyard_lang::Program>, u32), EngineError> {
        let record = self.archive.workflow(&schedule.workflow, schedule.version).await?;
        let record = record.ok_or_else(|| StoreError::unknown("workflow", &schedule.workflow))?;
        Ok((self.catalog.get(record.definition).await?, record.version))
    }
}

fn read(schedule: &Schedule) -> Result<Timetable, EngineError> {
    schedule.timetable().map_err(|bad| EngineError::BadRequest(bad.to_string()))
}
