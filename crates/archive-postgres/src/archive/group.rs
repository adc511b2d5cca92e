//! Calls that are written together: which of them fit the stored data, and what they change. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use switchyard_core::RunId;
use switchyard_core::run::{Accepted, Event, EventKind};
use switchyard_store::StoreError;
use switchyard_store::projection::{Place, RunRow, place, project};

use super::batch::Batch;

/// An event with its serialized body.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) event: Event,
    pub(super) body: String,
    pub(super) checksum: u32,
}

/// The stored rows that the calls concern, read under locks.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) runs: HashMap<RunId, RunRow>,
    /// The runs that have these idempotency keys.
    pub(super) keys: HashMap<Arc<str>, RunId>,
    /// Events of the calls that are already stored.
    pub(super) events: HashMap<(RunId, u64), Event>,
}

/// A run that gets new events.
#[derive(Debug)]
pub(super) struct Grown<'a> {
    /// The last stored seq; 0 if the run is not stored.
    stored_seq: u64,
    /// The row of the run after the new events.
    pub(super) row: RunRow,
    /// The events that are new, without gaps.
    pub(super) new: Vec<&'a Written>,
}

/// The changes of every call that fits the stored data.
#[derive(Debug)]
pub(super) struct Group<'a> {
    stored: &'a Stored,
    keys: HashMap<Arc<str>, RunId>,
    pub(super) runs: HashMap<RunId, Grown<'a>>,
    pub(super) batch: Batch<'a>,
}

/// The newest seq of each run within the call that is being checked.
type Seqs = HashMap<RunId, u64>;

impl<'a> Group<'a> {
    pub(super) fn new(stored: &'a Stored) -> Self {
        Self { stored, keys: HashMap::new(), runs: HashMap::new(), batch: Batch::default() }
    }

    /// Adds a whole call, or refuses it and changes nothing.
    pub(super) fn take(&mut self, call: &'a [Written]) -> Result<(), StoreError> {
        let mut seqs = Seqs::new();
        for (n, written) in call.iter().enumerate() {
            self.check(&written.event, &mut seqs, &call[..n])?;
        }
        for written in call {
            self.add(written);
        }
        Ok(())
    }

    fn last_seq(&self, run: RunId) -> u64 {
        match self.runs.get(&run) {
            Some(grown) => grown.row.last_seq,
            None => self.stored.runs.get(&run).map_or(0, |stored| stored.last_seq),
        }
    }

    fn check(&self, event: &Event, seqs: &mut Seqs, before: &[Written]) -> Result<(), StoreError> {
        let last_seq = seqs.get(&event.run).copied().unwrap_or_else(|| self.last_seq(event.run));
        if place(last_seq, event)? == Place::Taken {
            return self.compare(event, before);
        }
        if let EventKind::RunAccepted(accepted) = &event.kind {
            self.check_key(event.run, accepted, before)?;
        }
        seqs.insert(event.run, event.seq);
        Ok(())
    }

    /// Compares an event with the stored one of the same seq. If they differ, the histories differ.
    fn compare(&self, event: &Event, before: &[Written]) -> Result<(), StoreError> {
        let there = match self.runs.get(&event.run) {
            Some(grown) if event.seq > grown.stored_seq => {
                let at = usize::try_from(event.seq - grown.stored_seq - 1).unwrap_or(usize::MAX);
                grown.new.get(at).map(|written| &written.event)
            }
            _ => self.stored.events.get(&(event.run, event.seq)),
        };
        let in_this_call = || {
            let same_place = |w: &&Written| w.event.run == event.run && w.event.seq == event.seq;
            before.iter().find(same_place).map(|written| &written.event)
        };
        if there.or_else(in_this_call) == Some(event) {
            return Ok(());
        }
        Err(StoreError::Diverged { run: event.run, seq: event.seq })
    }

    /// Refuses a duplicate idempotency key. The hot store accepts a key only once, so this is a bug.
    fn check_key(&self, run: RunId, accepted: &Accepted, before: &[Written]) -> Result<(), StoreError> {
        let Some(idempotency) = &accepted.idempotency else { return Ok(()) };
        let key = &idempotency.key;
        let in_this_call = before.iter().any(|written| match &written.event.kind {
            EventKind::RunAccepted(other) => other.idempotency.as_ref().is_some_and(|i| i.key == *key),
            _ => false,
        });
        if in_this_call || self.keys.contains_key(key) || self.stored.keys.contains_key(key) {
            return Err(StoreError::Corrupt(format!(
                "{run} was accepted with idempotency key `{key}`, which another run has"
            )));
        }
        Ok(())
    }

    /// Adds an event that was checked. An event that is already stored changes nothing.
    fn add(&mut self, written: &'a Written) {
        let event = &written.event;
        if event.seq <= self.last_seq(event.run) {
            return;
        }
        let grown = self.runs.entry(event.run).or_insert_with(|| {
            let row = self.stored.runs.get(&event.run).copied().unwrap_or(RunRow::NEW);
            Grown { stored_seq: row.last_seq, row, new: Vec::new() }
        });
        for change in project(&mut grown.row, event) {
            self.batch.add(event.run, change);
        }
        grown.new.push(written);
        if let EventKind::RunAccepted(accepted) = &event.kind {
            self.keys.extend(accepted.idempotency.as_ref().map(|i| (i.key.clone(), event.run)));
        }
    }
}
