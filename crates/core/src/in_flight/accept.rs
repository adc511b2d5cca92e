//! Acceptance of new runs.

use std::sync::Arc;

use super::*;
use crate::run::{ParentLink, Refusal};
use crate::{Labels, Payload, TraceLink};

/// A run to accept. Its graph must be known already (`InFlight::learn`).
#[derive(Clone, Debug)]
pub struct NewRun {
    pub id: RunId,
    pub accepted: Accepted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    New(RunId),
    /// The idempotency key was used before, with the same body.
    Existing(RunId),
}

impl Acceptance {
    pub fn run(self) -> RunId {
        match self {
            Self::New(run) | Self::Existing(run) => run,
        }
    }
}

impl Accepted {
    pub fn child(
        workflow: Arc<str>,
        definition: Hash,
        input: Payload,
        parent: ParentLink,
        trace: Option<Arc<TraceLink>>,
        labels: Labels,
    ) -> Self {
        Self { parent: Some(parent), trace, labels, ..Self::plain(workflow, definition, input) }
    }

    /// An acceptance without keys, limits or a parent.
    pub fn plain(workflow: Arc<str>, definition: Hash, input: Payload) -> Self {
        Self {
            workflow,
            workflow_version: None,
            definition,
            input,
            queued: false,
            idempotency: None,
            concurrency: None,
            start_at: None,
            priority: None,
            deadline: None,
            parallelism: None,
            parent: None,
            forked_from: None,
            scheduled_at: None,
            trace: None,
            labels: Labels::new(),
            schedule: None,
            seeds: Vec::new(),
        }
    }
}

impl InFlight {
    pub fn accept(
        &mut self,
        new: NewRun,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Result<Acceptance, Refusal> {
        self.forget_old_keys(now);
        if let Some(known) = self.check_key(&new.accepted)? {
            return Ok(Acceptance::Existing(known));
        }
        if self.runs.contains_key(&new.id) {
            return Err(Refusal::RunExists(new.id));
        }
        let definition = new.accepted.definition;
        let ir = self.irs.get(&definition).cloned().ok_or(Refusal::UnknownDefinition(definition))?;
        let mut accepted = new.accepted;
        accepted.start_at = accepted.start_at.filter(|at| now < *at);
        // Acceptance does not depend on other runs: `line_up` checks for room once this run is in place.
        accepted.queued = accepted.concurrency.is_some() || accepted.start_at.is_some();
        let starts = accepted.start_at.unwrap_or(now);
        accepted.deadline = accepted.deadline.or(ir.deadline.map(|after| starts.plus(after)));
        if let Some(key) = &accepted.idempotency {
            self.keys.insert(key.key.clone(), (key.body, new.id));
        }
        let lines_up = accepted.concurrency.is_some() && accepted.start_at.is_none();
        let (id, mut changes) = self.place(new.id, accepted, ir, now);
        if lines_up {
            changes.effects.push(Effect::LineUp);
        }
        self.carry_out(id, changes, now, out);
        Ok(Acceptance::New(id))
    }

    fn place(&mut self, id: RunId, accepted: Accepted, ir: Arc<Ir>, now: Timestamp) -> (RunId, Changes) {
        let mut changes = Changes::default();
        let run = Run::accept(id, accepted, ir, now, &mut changes);
        let generation = self.next_generation();
        self.runs.insert(id, Slot::new(run, generation));
        (id, changes)
    }

    /// Starts a child run. Its graph is known: the parent's worker made it known before it asked for the child.
    pub(super) fn start_child(
        &mut self,
        child: RunId,
        accepted: Accepted,
        now: Timestamp,
    ) -> Option<(RunId, Changes)> {
        self.note_missing(child);
        // A parent restored from an older history starts children again that are already under way.
        if self.runs.contains_key(&child) {
            return None;
        }
        let ir = self.irs.get(&accepted.definition).cloned()?;
        let accepted = Accepted { deadline: ir.deadline.map(|after| now.plus(after)), ..accepted };
        Some(self.place(child, accepted, ir, now))
    }

    fn check_key(&self, accepted: &Accepted) -> Result<Option<RunId>, Refusal> {
        let Some(wanted) = &accepted.idempotency else { return Ok(None) };
        match self.keys.get(&wanted.key) {
            None => Ok(None),
            Some((body, run)) if *body == wanted.body => Ok(Some(*run)),
            Some((_, run)) => Err(Refusal::KeyReused { key: wanted.key.clone(), run: *run }),
        }
    }

    pub(super) fn age_key(&mut self, run: &Run, now: Timestamp) {
        if let Some(key) = &run.accepted.idempotency {
            self.keys_of_ended.push_back((now.plus(self.limits.key_memory), key.key.clone()));
        }
    }

    fn forget_old_keys(&mut self, now: Timestamp) {
        while self.keys_of_ended.front().is_some_and(|(until, _)| *until <= now) {
            let Some((_, key)) = self.keys_of_ended.pop_front() else { return };
            // A retried run keeps its key until it ends again.
            if self.keys.get(&key).is_some_and(|(_, run)| !self.runs.contains_key(run)) {
                self.keys.remove(&key);
            }
        }
    }
}
