//! Calls that are written together: which of them fit what is stored, and what they change. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use switchyard_core::run::{Accepted, Event, EventKind, RunStatus};
use switchyard_core::{Hash, Payload, RunId};
use switchyard_store::StoreError;

use super::project::{Approvals, Dead, RunStatusRow};

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
    pub(super) runs: HashMap<RunId, StoredRun>,
    /// The runs that have these idempotency keys.
    pub(super) keys: HashMap<Arc<str>, RunId>,
    /// Events that were handed over and are there already.
    pub(super) events: HashMap<(RunId, u64), Event>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StoredRun {
    pub(super) last_seq: u64,
    pub(super) status: RunStatus,
    pub(super) queued: bool,
}

/// A run that the calls add to.
#[derive(Debug)]
pub(super) struct Grown<'a> {
    /// How far it is stored; 0 if it is not.
    stored_seq: u64,
    pub(super) standing: RunStatusRow,
    /// The events that are new, without gaps.
    pub(super) new: Vec<&'a Written>,
}

impl Grown<'_> {
    pub(super) fn last_seq(&self) -> u64 {
        self.stored_seq + self.new.len() as u64
    }

    /// What it was accepted with, if that is new.
    pub(super) fn accepted(&self) -> Option<(&Event, &Accepted)> {
        match &self.new.first()?.event {
            event @ Event { kind: EventKind::RunAccepted(accepted), .. } => Some((event, accepted)),
            _ => None,
        }
    }
}

/// The changes of every call that fits.
#[derive(Debug)]
pub(super) struct Group<'a> {
    stored: &'a Stored,
    keys: HashMap<Arc<str>, RunId>,
    pub(super) runs: HashMap<RunId, Grown<'a>>,
    pub(super) approvals: Approvals,
    pub(super) dead: Dead,
    /// Payloads in the CAS, and the runs that hold on to them.
    pub(super) payloads: HashSet<(Hash, RunId)>,
}

/// The newest seqs within a call that is being looked at.
type Seqs = HashMap<RunId, u64>;

impl<'a> Group<'a> {
    pub(super) fn new(stored: &'a Stored) -> Self {
        Self {
            stored,
            keys: HashMap::new(),
            runs: HashMap::new(),
            approvals: Approvals::default(),
            dead: Dead::default(),
            payloads: HashSet::new(),
        }
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
            Some(grown) => grown.last_seq(),
            None => self.stored.runs.get(&run).map_or(0, |stored| stored.last_seq),
        }
    }

    fn check(&self, event: &Event, seqs: &mut Seqs, before: &[Written]) -> Result<(), StoreError> {
        let last_seq = seqs.get(&event.run).copied().unwrap_or_else(|| self.last_seq(event.run));
        if event.seq <= last_seq {
            return self.compare(event, before);
        }
        if event.seq != last_seq + 1 {
            let what = format!("event {} of {} came after event {last_seq}", event.seq, event.run);
            return Err(StoreError::Corrupt(what));
        }
        match &event.kind {
            EventKind::RunAccepted(accepted) if last_seq == 0 => {
                self.check_key(event.run, accepted, before)?
            }
            EventKind::RunAccepted(_) => return Err(out_of_place(event)),
            _ if last_seq == 0 => return Err(out_of_place(event)),
            _ => {}
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
        let stored = self.stored.runs.get(&event.run);
        let grown = self.runs.entry(event.run).or_insert_with(|| Grown {
            stored_seq: stored.map_or(0, |stored| stored.last_seq),
            standing: stored.map_or_else(
                || RunStatusRow::accepted(false),
                |stored| RunStatusRow::stored(stored.status, stored.queued),
            ),
            new: Vec::new(),
        });
        if let EventKind::RunAccepted(accepted) = &event.kind {
            grown.standing = RunStatusRow::accepted(accepted.queued);
            self.keys.extend(accepted.idempotency.as_ref().map(|i| (i.key.clone(), event.run)));
        }
        grown.standing.follow(event);
        grown.new.push(written);
        self.approvals.follow(event);
        self.dead.follow(event);
        event.kind.for_each_payload(&mut |payload| {
            if let Payload::Cas(reference) = payload {
                self.payloads.insert((reference.hash, event.run));
            }
        });
    }
}

fn out_of_place(event: &Event) -> StoreError {
    StoreError::Corrupt(format!("{} is event {} of {}", event.kind.name(), event.seq, event.run))
}
