//! Workflows that start by themselves.
//!
//! A start is a submission whose idempotency key names the tick. So a tick is started once, whether several
//! servers see it, one crashed between starting and noting it, or a backfill comes over it again.

use std::sync::Arc;

use switchyard_core::run::{Concurrency, Refusal};
use switchyard_core::schedule::{Overlap, Schedule, Timetable};
use switchyard_core::yard::Acceptance;
use switchyard_core::{RunId, Timestamp};
use switchyard_store::{ScheduleRecord, StoreError};

use super::{Engine, EngineError, Submission};
use crate::evaluate::prepare_input;

/// What one look at the schedules came to.
#[derive(Debug, Default)]
pub struct Pass {
    pub started: Vec<RunId>,
    /// Schedules that could not be started, and why. They are tried again.
    pub failed: Vec<(Arc<str>, EngineError)>,
    /// When the next start is due.
    pub next: Option<Timestamp>,
}

impl Engine {
    /// Keeps a schedule; it starts at its next tick.
    pub async fn put_schedule(&self, schedule: Schedule) -> Result<ScheduleRecord, EngineError> {
        read(&schedule)?;
        // Told now, to whoever makes it, rather than at every tick to nobody.
        let (program, _) = self.scheduled_workflow(&schedule).await?;
        prepare_input(&program, self.payloads.load(&schedule.input).await?)
            .await
            .map_err(EngineError::Invalid)?;
        self.keep_schedule(schedule).await
    }

    async fn keep_schedule(&self, schedule: Schedule) -> Result<ScheduleRecord, EngineError> {
        let timetable = read(&schedule)?;
        let next_at = timetable.next_after(self.clock.now());
        if next_at.is_none() {
            return Err(EngineError::BadRequest(format!("`{}` never comes", schedule.cron)));
        }
        let last_run = self.archive.schedule(&schedule.name).await?.and_then(|record| record.last_run);
        let record = ScheduleRecord { schedule, next_at, last_run };
        self.archive.put_schedule(record.clone()).await?;
        Ok(record)
    }

    /// Ticks that pass while a schedule is paused are not made up for.
    pub async fn pause_schedule(&self, name: &str, paused: bool) -> Result<ScheduleRecord, EngineError> {
        let record = self.schedule(name).await?;
        self.keep_schedule(Schedule { paused, ..record.schedule }).await
    }

    pub async fn remove_schedule(&self, name: &str) -> Result<(), EngineError> {
        match self.archive.remove_schedule(name).await? {
            true => Ok(()),
            false => Err(StoreError::unknown("schedule", name).into()),
        }
    }

    pub async fn schedule(&self, name: &str) -> Result<ScheduleRecord, EngineError> {
        let found = self.archive.schedule(name).await?;
        found.ok_or_else(|| StoreError::unknown("schedule", name).into())
    }

    /// Starts the ticks of a span of time, in the past or not, that were not started yet.
    pub async fn backfill(
        &self,
        name: &str,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<(Timestamp, Acceptance)>, EngineError> {
        let schedule = self.schedule(name).await?.schedule;
        let mut started = Vec::new();
        for tick in read(&schedule)?.between(from, until) {
            started.push((tick, self.start_tick(&schedule, tick).await?));
        }
        Ok(started)
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
                continue;
            }
            let started = self.start_tick(&schedule, *tick).await?;
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

    async fn is_under_way(&self, run: Option<RunId>) -> Result<bool, EngineError> {
        match run {
            Some(run) => Ok(self.hot.in_flight(run).await?),
            None => Ok(false),
        }
    }

    async fn start_tick(&self, schedule: &Schedule, tick: Timestamp) -> Result<Acceptance, EngineError> {
        let (program, version) = self.scheduled_workflow(schedule).await?;
        let concurrency = (schedule.overlap == Overlap::Queue)
            .then(|| Concurrency { key: format!("schedule/{}", schedule.name).into(), limit: 1 });
        let submission = Submission {
            workflow_version: Some(version),
            idempotency_key: Some(schedule.key_of(tick)),
            concurrency,
            ..Submission::new(program, self.payloads.load(&schedule.input).await?)
        };
        match self.submit(submission).await {
            // The tick was started before, with an older version of the workflow or of the schedule.
            Err(EngineError::Refused(Refusal::KeyReused { run, .. })) => Ok(Acceptance::Existing(run)),
            other => other,
        }
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
