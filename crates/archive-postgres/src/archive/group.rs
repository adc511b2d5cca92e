//! Calls that are written together: which of them fit what is stored, and what they change. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use switchyard_core::RunId;
use switchyard_core::run::{Accepted, Event, EventKind};
use switchyard_store::StoreError;
use switchyard_store::projection::{Place, RunRow, place, project};

use super::batch::Batch;

/// An event with its body as it is stored.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) event: Event,
    pub(super) body: String,
    pub(super) checksum: u32,
}

/// What the database says about what the calls concern, under locks.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) runs: HashMap<RunId, RunRow>,
    /// The runs that have these idempotency keys.
    pub(super) keys: HashMap<Arc<str>, RunId>,
    /// Events that were handed over and are there already.
    pub(super) events: HashMap<(RunId, u64), Event>,
}

/// A run that the calls add to.
#[derive(Debug)]
pub(super) struct Grown<'a> {
    /// How far it is stored; 0 if it is not.
    stored_seq: u64,
    /// Its row with the new events.
    pub(super) row: RunRow,
    /// The events that are new, without gaps.
    pub(super) new: Vec<&'a Written>,
}

/// The changes of every call that fits.
#[derive(Debug)]
pub(super) struct Group<'a> {
    stored: &'a Stored,
    keys: HashMap<Arc<str>, RunId>,
    pub(super) runs: HashMap<RunId, Grown<'a>>,
    pub(super) batch: Batch<'a>,
}

/// The newest seqs within a call that is being looked at.
type Seqs = HashMap<RunId, u64>;

impl<'a> Group<'a> {
    pub(super) fn new(stored: &'a Stored) -> Self {
        Self { stored, keys: HashMap::new(), runs: HashMap::new(), batch: Batch::default() }
    }

    /// Takes a call whole, or refuses it and is as before.
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

    /// An event that is there already says the same, or the history that it belongs to is another one.
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

    /// The hot store lets a key in only once, so a second run with it is a bug that should name itself.
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

    /// An event that was checked. One that is there already changes nothing.
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
