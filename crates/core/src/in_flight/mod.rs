//! Many runs together: their queues, timers, leases, approvals, and the keys that limit how many are under way.
//!
//! This module is pure, too: the in-process hot store puts it behind a lock, and the distributed store is tested
//! against it. Commands append the events of every run they touch to `out`, in the order in which they must be stored:
//! a parent and its child change together or not at all.

mod accept;
mod claim;
mod command;
mod concurrency;
mod lease;
mod parallelism;
mod partial;
mod queue;
mod restore;
mod timer;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::ir::{Ir, NodeIx};
use crate::run::{Accepted, AwaitedChild, Changes, ChildEnd, Effect, Event, Phase, Run};
use crate::{ApprovalId, Hash, RunId, Timestamp};

pub use accept::{Acceptance, NewRun};
pub use claim::{Taker, Want, takes};
pub use command::{Applied, Command};
pub use lease::{ClaimStatus, Lease};
pub use partial::{ChildToCancel, ConcurrencyState, Decided, ParallelismState, QueuedToken, StoredRun};
pub use queue::{BandDepth, PRIORITIES, QueueDepth, band};
pub use timer::TimerKey;

use concurrency::ConcurrencyKey;
use parallelism::Parallelism;
use partial::Partial;
use queue::Queue;

/// The number of known graphs above which graphs without a holder are forgotten.
const IRS_KEPT: usize = 1_000;

/// Settings for all runs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many workers may be lost on a node before the node fails.
    pub deliveries_max: u32,
    /// How long an idempotency key is remembered here after its run ended; the archive has it for good.
    pub key_memory: Duration,
    /// How long an attempt may take where the graph says [`AttemptLimit::Default`](crate::ir::AttemptLimit).
    pub attempt_default: Duration,
    /// How long workers have to stop tasks of a run that is cancelled or past its deadline.
    pub stop_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deliveries_max: 10,
            key_memory: Duration::from_secs(60),
            attempt_default: Duration::from_secs(30 * 60),
            stop_grace: Duration::from_secs(30),
        }
    }
}

/// All runs in flight, with their queues, timers, leases and keys.
#[derive(Debug, Default)]
pub struct InFlight {
    limits: Limits,
    irs: HashMap<Hash, Arc<Ir>>,
    irs_sweep_at: usize,
    runs: HashMap<RunId, Slot>,
    queues: BTreeMap<Arc<str>, Queue>,
    timers: BTreeSet<(Timestamp, RunId, TimerKey)>,
    leases: BTreeSet<(Timestamp, RunId, NodeIx, u32)>,
    approvals: HashMap<ApprovalId, RunId>,
    concurrency_keys: HashMap<Arc<str>, ConcurrencyKey>,
    keys: HashMap<Arc<str>, (Hash, RunId)>,
    keys_of_ended: VecDeque<(Timestamp, Arc<str>)>,
    /// The last generation given out. Never reused: a retried run can find tokens of an earlier generation in a queue.
    generations: u64,
    nudges: Nudges,
    /// Set only in a store that keeps most runs elsewhere.
    partial: Option<Partial>,
}

/// Wake-ups for workers and timers since the last [`InFlight::take_nudges`].
#[derive(Debug, Default)]
pub struct Nudges {
    /// One entry for each token that was queued.
    pub queues: Vec<Arc<str>>,
    /// A timer was set that is due before all others.
    pub timers: bool,
}

/// A run with the data that is kept about it outside its history.
#[derive(Debug)]
struct Slot {
    run: Run,
    /// Tokens and timers of an earlier generation are void.
    generation: u64,
    timers: BTreeSet<(Timestamp, TimerKey)>,
    leases: HashMap<NodeIx, Lease>,
    /// Only for runs that cap their parallelism.
    parallelism_state: Option<Box<Parallelism>>,
}

impl Slot {
    fn new(run: Run, generation: u64) -> Self {
        let parallelism_state = run.parallelism().map(|cap| Box::new(Parallelism::new(cap)));
        Self { run, generation, timers: BTreeSet::new(), leases: HashMap::new(), parallelism_state }
    }
}

impl InFlight {
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Makes a graph known for as long as a run, a program or a pending submission holds it.
    pub fn learn(&mut self, ir: Arc<Ir>) {
        if self.irs.len() >= self.irs_sweep_at.max(IRS_KEPT) {
            self.irs.retain(|_, ir| Arc::strong_count(ir) > 1);
            self.irs_sweep_at = 2 * self.irs.len();
        }
        self.irs.entry(ir.hash).or_insert(ir);
    }

    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id).map(|slot| &slot.run)
    }

    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values().map(|slot| &slot.run)
    }

    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn timers_len(&self) -> usize {
        self.timers.len()
    }

    pub fn run_of_approval(&self, approval: &ApprovalId) -> Option<RunId> {
        self.approvals.get(approval).copied()
    }

    fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    /// When the remaining tasks of a run that closes now are cancelled.
    fn stop_by(&self, now: Timestamp) -> Timestamp {
        now.plus(self.limits.stop_grace)
    }

    pub fn take_nudges(&mut self) -> Nudges {
        std::mem::take(&mut self.nudges)
    }

    /// Applies a command to a run, and carries out the effects.
    fn act<R>(
        &mut self,
        id: RunId,
        now: Timestamp,
        out: &mut Vec<Event>,
        command: impl FnOnce(&mut Run, &mut Changes) -> R,
    ) -> Option<R> {
        self.act_on(id, Changes::default(), now, out, command)
    }

    fn act_on<R>(
        &mut self,
        id: RunId,
        mut changes: Changes,
        now: Timestamp,
        out: &mut Vec<Event>,
        command: impl FnOnce(&mut Run, &mut Changes) -> R,
    ) -> Option<R> {
        self.note_missing(id);
        let slot = self.runs.get_mut(&id)?;
        let answer = command(&mut slot.run, &mut changes);
        self.carry_out(id, changes, now, out);
        Some(answer)
    }

    fn carry_out(&mut self, id: RunId, changes: Changes, now: Timestamp, out: &mut Vec<Event>) {
        out.extend(changes.events);
        // A work list instead of recursion: runs can be nested deep, and end together.
        let mut open: VecDeque<(RunId, Effect)> =
            changes.effects.into_iter().map(|effect| (id, effect)).collect();
        while let Some((id, effect)) = open.pop_front() {
            let further = self.carry_out_one(id, effect, now);
            for (id, changes) in further {
                out.extend(changes.events);
                open.extend(changes.effects.into_iter().map(|effect| (id, effect)));
            }
        }
    }

    /// Carries out one effect, and returns the changes that it makes in other runs.
    fn carry_out_one(&mut self, id: RunId, effect: Effect, now: Timestamp) -> Vec<(RunId, Changes)> {
        match effect {
            Effect::Ready(ix) => self.token_ready(id, ix, now),
            Effect::Left(ix) => self.token_left(id, ix, now),
            Effect::Timer { at, node, claim } => self.set_timer(id, at, TimerKey::Node { node, claim }),
            Effect::Deadline { at } => self.set_timer(id, at, TimerKey::Deadline),
            Effect::StartAt { at } => self.set_timer(id, at, TimerKey::Start),
            Effect::LineUp => return self.line_up(id, now),
            Effect::StopBy { at } => self.set_timer(id, at, TimerKey::Stop),
            Effect::ApprovalOpened { approval } => {
                self.approvals.insert(approval, id);
            }
            Effect::ApprovalClosed { approval } => {
                self.approvals.remove(&approval);
            }
            Effect::ClaimsEnded => self.drop_ended_leases(id),
            Effect::Rewired => self.rewire(id, now),
            Effect::StartChild { child, workflow, definition, input, labels, parent } => {
                let of = self.run(id).map(|run| &run.accepted);
                let (trace, priority) = (of.and_then(|of| of.trace.clone()), of.and_then(|of| of.priority));
                let accepted = Accepted::child(workflow, definition, input, parent, trace, labels);
                let accepted = Accepted { priority, ..accepted };
                return self.start_child(child, accepted, now).into_iter().collect();
            }
            Effect::CancelChild { child, compensate, stop_by } => {
                let to_cancel = ChildToCancel { child, compensate, stop_by };
                if !self.leaves_for_later(to_cancel) {
                    return self.cancel_one(to_cancel, now).into_iter().collect();
                }
            }
            Effect::NotLoaded { node, wanted } => self.note_not_loaded(id, node, wanted),
            Effect::Ended => return self.retire(id, now),
        }
        Vec::new()
    }

    /// Tells a parent about a child's end that the parent missed. Nothing changes if the parent does not wait for that
    /// child.
    pub fn child_ended(&mut self, child: &AwaitedChild, end: ChildEnd, now: Timestamp, out: &mut Vec<Event>) {
        self.act(child.link.run, now, out, |parent, changes| {
            parent.awaited_child_ended(child, end, now, changes);
        });
    }

    /// Cancels a child that its parent has stopped.
    pub fn cancel_child(&mut self, to_cancel: ChildToCancel, now: Timestamp, out: &mut Vec<Event>) {
        if let Some((child, changes)) = self.cancel_one(to_cancel, now) {
            self.carry_out(child, changes, now, out);
        }
    }

    fn cancel_one(&mut self, to_cancel: ChildToCancel, now: Timestamp) -> Option<(RunId, Changes)> {
        let ChildToCancel { child, compensate, stop_by } = to_cancel;
        let stop_by = stop_by.unwrap_or_else(|| self.stop_by(now));
        self.changing(child, |run, changes| run.cancel_with_parent(compensate, stop_by, now, changes))
    }

    fn changing(
        &mut self,
        id: RunId,
        change: impl FnOnce(&mut Run, &mut Changes),
    ) -> Option<(RunId, Changes)> {
        self.note_missing(id);
        let slot = self.runs.get_mut(&id)?;
        let mut changes = Changes::default();
        change(&mut slot.run, &mut changes);
        Some((id, changes))
    }

    /// Removes an ended run, tells its parent, and starts the next run of its concurrency key.
    fn retire(&mut self, id: RunId, now: Timestamp) -> Vec<(RunId, Changes)> {
        let Some(slot) = self.runs.remove(&id) else { return Vec::new() };
        // Messages to an ended run are too late; it is not loaded for them.
        self.deny(id);
        self.forget_timers(id, &slot);
        self.forget_leases(id, &slot);
        let run = slot.run;
        self.age_key(&run, now);
        let mut further = Vec::new();
        if let (Some(parent), Phase::Ended(status)) = (&run.accepted.parent, run.phase) {
            let (output, error) = (run.output.clone(), run.error.clone());
            let end = ChildEnd { run: Some(id), status, output, error };
            further.extend(self.changing(parent.run, |p, changes| p.child_ended(parent, end, now, changes)));
        }
        // A run cancelled before its delayed start holds no place under its key.
        if !run.delayed
            && let Some(next) = self.leave_concurrency_key(&run)
        {
            further.extend(self.changing(next, |run, changes| run.start(now, changes)));
        }
        further
    }

    /// Voids every token and timer of a run, and issues those that its state requires.
    fn rewire(&mut self, id: RunId, now: Timestamp) {
        let Some(mut slot) = self.runs.remove(&id) else { return };
        self.forget_timers(id, &slot);
        slot.generation = self.next_generation();
        slot.timers.clear();
        if let Some(parallelism_state) = &mut slot.parallelism_state {
            parallelism_state.rebuild(&slot.run);
        }
        let standing = slot.run.standing_effects();
        self.runs.insert(id, slot);
        for effect in standing {
            match effect {
                Effect::Ready(ix) => self.token_ready(id, ix, now),
                Effect::Timer { at, node, claim } => self.set_timer(id, at, TimerKey::Node { node, claim }),
                Effect::Deadline { at } => self.set_timer(id, at, TimerKey::Deadline),
                Effect::StartAt { at } => self.set_timer(id, at, TimerKey::Start),
                Effect::StopBy { at } => self.set_timer(id, at, TimerKey::Stop),
                Effect::ApprovalOpened { approval } => {
                    self.approvals.insert(approval, id);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::sketch::Sketch;

    #[test]
    fn graphs_that_nobody_holds_are_forgotten() {
        let mut in_flight = InFlight::default();
        let held: Vec<Arc<Ir>> = (1..20).map(|length| Sketch::chain(length).ir()).collect();
        for ir in &held {
            in_flight.learn(ir.clone());
        }
        for i in 0..5_000 {
            in_flight.learn(Sketch::new().node(&format!("n{i}"), &[]).ir());
        }
        assert!(in_flight.irs.len() <= 2 * IRS_KEPT, "{} graphs are kept", in_flight.irs.len());
        assert!(held.iter().all(|ir| in_flight.irs.contains_key(&ir.hash)));
    }
}
