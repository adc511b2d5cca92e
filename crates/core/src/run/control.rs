//! Commands from outside: accept, start, cancel, pause, resume.

use std::sync::Arc;

use super::*;
use crate::error::RunError;
use crate::ir::Ir;

impl Run {
    /// Accepts a run. It starts at once unless `accepted.queued`.
    pub fn accept(id: RunId, accepted: Accepted, ir: Arc<Ir>, now: Timestamp, out: &mut Changes) -> Self {
        let kind = EventKind::RunAccepted(Box::new(accepted.clone()));
        let event = Event { run: id, seq: 1, at: now, kind };
        let mut run = Self::from_accepted(&event, &accepted, ir, &mut out.effects);
        out.events.push(event);
        run.conclude(now, out);
        run
    }

    /// Ends the delay of a run whose start time has come: the run starts, or waits for its concurrency key. Early and
    /// repeated calls change nothing.
    pub fn come_due(&mut self, now: Timestamp, out: &mut Changes) {
        if self.starts_at().is_none_or(|at| now < at) {
            return;
        }
        match self.accepted.concurrency {
            Some(_) => self.emit(EventKind::RunQueued {}, now, out),
            None => self.start(now, out),
        }
    }

    /// Starts a run that waited for its start time or its concurrency key.
    pub fn start(&mut self, now: Timestamp, out: &mut Changes) {
        if self.phase == Phase::Queued {
            self.emit(EventKind::RunStarted {}, now, out);
            self.conclude(now, out);
        }
    }

    /// Closes the run: running tasks are asked to stop, and are cancelled at `stop_by`. If the run is closing already
    /// and `stop_by` has come, its tasks are cancelled at once.
    pub fn cancel(
        &mut self,
        by: &str,
        reason: &str,
        compensate: bool,
        stop_by: Timestamp,
        now: Timestamp,
        out: &mut Changes,
    ) -> Result<(), Refusal> {
        if self.phase == Phase::Closing && stop_by <= now {
            self.hurry(stop_by, now, out);
            return Ok(());
        }
        self.refuse_unless(matches!(self.phase, Phase::Queued | Phase::Running), "cancelled")?;
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let error = RunError::of_run("cancelled", format!("cancelled by {by}{because}"));
        self.close(Outcome::Cancelled, error, Some(stop_by), compensate, now, out);
        self.conclude(now, out);
        Ok(())
    }

    /// Pauses the run: none of its tokens is handed out until it is resumed. Running tasks and timers continue.
    pub fn pause(&mut self, by: Arc<str>, now: Timestamp, out: &mut Changes) -> Result<(), Refusal> {
        let open = matches!(self.phase, Phase::Queued | Phase::Running) && !self.paused;
        self.refuse_unless(open, "paused")?;
        self.emit(EventKind::RunPaused { by, operation: None }, now, out);
        Ok(())
    }

    pub fn resume(&mut self, by: Arc<str>, now: Timestamp, out: &mut Changes) -> Result<(), Refusal> {
        self.refuse_unless(self.paused && !self.is_ended(), "resumed")?;
        self.emit(EventKind::RunResumed { by, operation: None }, now, out);
        Ok(())
    }

    /// Closes a run whose deadline has passed. Running tasks are asked to stop, and are cancelled at `stop_by`.
    pub fn expire(&mut self, stop_by: Timestamp, now: Timestamp, out: &mut Changes) {
        let due = self.deadline.is_some_and(|deadline| deadline <= now);
        if due && matches!(self.phase, Phase::Queued | Phase::Running) {
            let error = RunError::of_run("deadline_exceeded", "the run did not end before its deadline");
            self.close(Outcome::Failed, error, Some(stop_by), true, now, out);
            self.conclude(now, out);
        }
    }

    pub(super) fn refuse_unless(&self, fits: bool, verb: &'static str) -> Result<(), Refusal> {
        if fits { Ok(()) } else { Err(Refusal::WrongStatus { status: self.status(), verb }) }
    }
}
