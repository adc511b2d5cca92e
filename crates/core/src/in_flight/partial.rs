//! Partial loading: a store that keeps runs elsewhere loads the runs that a command touches, lets the core decide, and
//! writes back the result.
//!
//! The core finds out which runs a command touches only while it carries the command out: a child tells its parent, an
//! ended run admits the next in line. A run that the core needed and the store had not loaded is noted in
//! [`InFlight::missing`]; the store then starts over with that run loaded as well.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::*;
use crate::run::Wanted;

/// Facts about runs that were not loaded.
#[derive(Debug, Default)]
pub(super) struct Partial {
    absent: HashSet<RunId>,
    missing: BTreeSet<RunId>,
    lacking: BTreeSet<(RunId, Arc<str>, Wanted)>,
    cancelled: usize,
    to_cancel: Vec<ChildToCancel>,
}

/// A child that its parent has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildToCancel {
    pub child: RunId,
    pub compensate: bool,
    /// The parent's `stop_by`, if the parent is being closed as well.
    pub stop_by: Option<Timestamp>,
}

/// How many children a partial `InFlight` cancels together with their parent. It returns the others, to be cancelled by
/// separate commands.
const CANCELLED_AT_ONCE: usize = 200;

/// A run with all the data that a store keeps about it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    pub run: Run,
    pub generation: u64,
    pub timers: BTreeSet<(Timestamp, TimerKey)>,
    /// The lease of each held node.
    pub leases: BTreeMap<NodeIx, Lease>,
    /// Only for a run that caps its parallelism.
    pub parallelism_state: Option<ParallelismState>,
}

/// Which nodes of a capped run are queued or held, and which line up for that: (priority, arrival, node).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelismState {
    pub active: BTreeSet<NodeIx>,
    pub ready: Vec<(u8, u64, NodeIx)>,
    pub arrivals: u64,
}

/// A concurrency key: how many runs are under way, and the first runs in line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConcurrencyState {
    pub limit: u32,
    pub under_way: u32,
    pub line: Vec<RunId>,
}

/// A token that a command queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedToken {
    pub queue: Arc<str>,
    pub band: usize,
    pub run: RunId,
    pub node: NodeIx,
    pub generation: u64,
    pub queued_at: Timestamp,
    /// How long an attempt may take.
    pub limit: Option<Duration>,
}

/// The state in flight after a command. A loaded run that is missing here has ended.
#[derive(Debug, Default)]
pub struct Decided {
    pub stored_runs: HashMap<RunId, StoredRun>,
    /// In the order in which they were queued, within each queue and band.
    pub tokens: Vec<QueuedToken>,
    pub approvals: HashMap<ApprovalId, RunId>,
    /// Children to cancel with [`InFlight::cancel_child`].
    pub to_cancel: Vec<ChildToCancel>,
}

impl InFlight {
    /// In-flight state of the loaded runs alone. New generations start after `generations`.
    pub fn part(limits: Limits, generations: u64) -> Self {
        Self { generations, partial: Some(Partial::default()), ..Self::new(limits) }
    }

    pub fn load(&mut self, stored_run: StoredRun) {
        let StoredRun { run, generation, timers, leases, parallelism_state } = stored_run;
        let id = run.id;
        self.learn(run.ir.clone());
        for effect in run.standing_effects() {
            if let Effect::ApprovalOpened { approval } = effect {
                self.approvals.insert(approval, id);
            }
        }
        self.timers.extend(timers.iter().map(|(at, key)| (*at, id, *key)));
        self.leases.extend(leases.iter().map(|(ix, lease)| (lease.until, id, *ix, lease.claim)));
        let mut slot = Slot::new(run, generation);
        slot.timers = timers;
        slot.leases = leases.into_iter().collect();
        if let (Some(parallelism_state), Some(record)) = (&mut slot.parallelism_state, parallelism_state) {
            parallelism_state.recall(record);
        }
        self.runs.insert(id, slot);
    }

    pub fn load_concurrency_key(&mut self, key: Arc<str>, concurrency_key: ConcurrencyState) {
        let ConcurrencyState { limit, under_way, line } = concurrency_key;
        self.concurrency_keys.insert(key, ConcurrencyKey { limit, under_way, line: line.into() });
    }

    /// Records that there is no such run.
    pub fn deny(&mut self, id: RunId) {
        if let Some(partial) = &mut self.partial {
            partial.absent.insert(id);
        }
    }

    /// Runs that the core needed and that were neither loaded nor denied. If there are any, the decision is void.
    pub fn missing(&self) -> Vec<RunId> {
        self.partial.iter().flat_map(|partial| partial.missing.iter().copied()).collect()
    }

    /// Children of loaded runs that the core needed and that were not loaded, by run and node. If there are any, the
    /// decision is void.
    pub fn lacking(&self) -> impl Iterator<Item = &(RunId, Arc<str>, Wanted)> {
        self.partial.iter().flat_map(|partial| &partial.lacking)
    }

    pub(super) fn note_not_loaded(&mut self, id: RunId, node: NodeIx, wanted: Wanted) {
        let name = self.runs.get(&id).map(|slot| slot.run.ir.node(node).id.clone());
        if let (Some(partial), Some(name)) = (&mut self.partial, name) {
            partial.lacking.insert((id, name, wanted));
        }
    }

    /// Whether a separate command cancels the child.
    pub(super) fn leaves_for_later(&mut self, to_cancel: ChildToCancel) -> bool {
        let Some(partial) = &mut self.partial else { return false };
        partial.cancelled += 1;
        let later = partial.cancelled > CANCELLED_AT_ONCE;
        if later {
            partial.to_cancel.push(to_cancel);
        }
        later
    }

    /// How many loaded runs still wait for a key.
    pub fn waiting_for(&self, key: &str) -> usize {
        self.concurrency_keys.get(key).map_or(0, |concurrency_key| concurrency_key.line.len())
    }

    pub(super) fn note_missing(&mut self, id: RunId) {
        if let Some(partial) = &mut self.partial
            && !self.runs.contains_key(&id)
            && !partial.absent.contains(&id)
        {
            partial.missing.insert(id);
        }
    }

    pub fn give_back(self) -> Decided {
        let mut tokens = Vec::new();
        let limit = |token: &queue::Token| {
            let ir = &self.runs.get(&token.run)?.run.ir;
            ir.nodes.get(token.node.index())?.limit.or_default(self.limits.attempt_default)
        };
        for (name, queue) in self.queues {
            for (band, waiting) in queue.bands.into_iter().enumerate() {
                tokens.extend(waiting.into_iter().map(|token| QueuedToken {
                    queue: name.clone(),
                    band,
                    run: token.run,
                    node: token.node,
                    generation: token.generation,
                    queued_at: token.queued_at,
                    limit: limit(&token),
                }));
            }
        }
        let stored_runs = self.runs.into_iter().map(|(id, slot)| (id, slot.into())).collect();
        let to_cancel = self.partial.map(|partial| partial.to_cancel).unwrap_or_default();
        Decided { stored_runs, tokens, approvals: self.approvals, to_cancel }
    }
}

impl From<Slot> for StoredRun {
    fn from(slot: Slot) -> Self {
        Self {
            run: slot.run,
            generation: slot.generation,
            timers: slot.timers,
            leases: slot.leases.into_iter().collect(),
            parallelism_state: slot.parallelism_state.map(|parallelism_state| parallelism_state.record()),
        }
    }
}

impl Parallelism {
    fn recall(&mut self, record: ParallelismState) {
        self.active = record.active.into_iter().collect();
        self.ready = record.ready.into_iter().map(|(priority, at, ix)| (Reverse(priority), at, ix)).collect();
        self.arrivals = record.arrivals;
    }

    fn record(self) -> ParallelismState {
        ParallelismState {
            active: self.active.into_iter().collect(),
            ready: self.ready.into_iter().map(|(Reverse(priority), at, ix)| (priority, at, ix)).collect(),
            arrivals: self.arrivals,
        }
    }
}
