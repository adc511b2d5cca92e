//! Leases and limits: how long a worker may be silent before its claims are taken back, and how long it may take.

use serde::Serialize;

use super::*;
use crate::run::{ClaimRef, NodeState, ReleaseReason, Settled, Task, TimeLimit};

/// The standing of a claim: the answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimStatus {
    Held,
    /// Still held, but the run is being closed: the worker should stop and report that it has.
    Stop,
    /// Taken back, settled or never given. The store will refuse its settlement.
    Lost,
}

/// How long a claim lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub claim: u32,
    /// The end of the lease or the limit, whichever comes first.
    pub until: Timestamp,
    /// When the attempt times out. A heartbeat does not move this limit.
    pub limit: Option<Timestamp>,
}

impl Lease {
    /// None for a claim that lasts as long as its process.
    fn new(claim: u32, lease_ends: Option<Timestamp>, limit: Option<Timestamp>) -> Option<Self> {
        let until = lease_ends.into_iter().chain(limit).min()?;
        Some(Self { claim, until, limit })
    }

    /// Whether the attempt's time limit expires at `until`, rather than the lease.
    fn is_overdue(&self) -> bool {
        self.limit.is_some_and(|limit| limit <= self.until)
    }
}

impl InFlight {
    pub fn heartbeat(&mut self, claim: &ClaimRef, lease: Option<Duration>, now: Timestamp) -> ClaimStatus {
        let Some(slot) = self.runs.get_mut(&claim.run) else { return ClaimStatus::Lost };
        let Some(ix) = slot.run.ir.find(&claim.node) else { return ClaimStatus::Lost };
        if slot.run.standing(ix, claim.claim) != Settled::Applied {
            return ClaimStatus::Lost;
        }
        let stop = slot.run.closing.as_ref().is_some_and(|closing| closing.stop_running);
        let draining = slot.run.phase == Phase::Closing;
        if let Some(lease) = lease {
            let limit = slot.leases.get(&ix).and_then(|held| held.limit);
            self.put_lease(claim.run, ix, Lease::new(claim.claim, Some(now.plus(lease)), limit));
        }
        if stop && draining { ClaimStatus::Stop } else { ClaimStatus::Held }
    }

    /// Takes back every claim whose worker has been silent too long, and fails every attempt that took too long.
    pub fn reclaim(&mut self, now: Timestamp, out: &mut Vec<Event>) -> usize {
        let mut reclaimed = 0;
        while let Some(&(_, id, ix, claim)) = self.leases.first().filter(|(until, ..)| *until <= now) {
            let overdue = self.overdue(id, ix);
            self.drop_lease(id, ix, claim);
            let max = self.limits.deliveries_max;
            let taken = self.act(id, now, out, |run, changes| match overdue {
                Some(limit) => run.time_out(ix, claim, limit, now, changes),
                None => run.reclaim(ix, claim, ReleaseReason::LeaseExpired, max, now, changes),
            });
            reclaimed += usize::from(taken == Some(true));
        }
        reclaimed
    }

    /// The time limit of a held node, if this limit ends the claim, and not the lease.
    fn overdue(&self, id: RunId, ix: NodeIx) -> Option<Duration> {
        let slot = self.runs.get(&id)?;
        slot.leases.get(&ix).filter(|lease| lease.is_overdue())?;
        Some(self.attempt_limit(&slot.run.ir, ix).unwrap_or(self.limits.attempt_default))
    }

    /// How long an attempt of a node may take.
    pub(super) fn attempt_limit(&self, ir: &Ir, ix: NodeIx) -> Option<Duration> {
        ir.node(ix).limit.or_default(self.limits.attempt_default)
    }

    /// Gives a new claim its lease and its limit.
    pub(super) fn set_lease(&mut self, task: &mut Task, lease: Option<Duration>, now: Timestamp) {
        let Some(slot) = self.runs.get(&task.run) else { return };
        let lasts = self.attempt_limit(&slot.run.ir, task.ix);
        task.limit = lasts.map(|lasts| TimeLimit { lasts, ends: now.plus(lasts) });
        let limit = task.limit.map(|limit| limit.ends);
        self.put_lease(task.run, task.ix, Lease::new(task.claim, lease.map(|lease| now.plus(lease)), limit));
    }

    fn put_lease(&mut self, id: RunId, ix: NodeIx, lease: Option<Lease>) {
        let Some(lease) = lease else { return };
        self.drop_lease(id, ix, lease.claim);
        if let Some(slot) = self.runs.get_mut(&id) {
            slot.leases.insert(ix, lease);
            self.leases.insert((lease.until, id, ix, lease.claim));
        }
    }

    pub(super) fn drop_lease(&mut self, id: RunId, ix: NodeIx, claim: u32) {
        let Some(slot) = self.runs.get_mut(&id) else { return };
        if let Some(lease) = slot.leases.get(&ix).copied().filter(|lease| lease.claim == claim) {
            slot.leases.remove(&ix);
            self.leases.remove(&(lease.until, id, ix, claim));
        }
    }

    pub(super) fn forget_leases(&mut self, id: RunId, slot: &Slot) {
        for (ix, lease) in &slot.leases {
            self.leases.remove(&(lease.until, id, *ix, lease.claim));
        }
    }

    /// Drops the leases of claims that a command on the run has ended.
    pub(super) fn drop_ended_leases(&mut self, id: RunId) {
        let Some(slot) = self.runs.get(&id) else { return };
        let ended = |(ix, lease): (&NodeIx, &Lease)| {
            (slot.run.standing(*ix, lease.claim) != Settled::Applied).then_some((*ix, lease.claim))
        };
        let ended: Vec<_> = slot.leases.iter().filter_map(ended).collect();
        for (ix, claim) in ended {
            self.drop_lease(id, ix, claim);
        }
    }

    /// Moves leases to the new indices of their nodes after a patch.
    pub(super) fn move_leases(&mut self, id: RunId, before: &Ir) {
        let Some(slot) = self.runs.get_mut(&id) else { return };
        let old: Vec<_> = slot.leases.drain().collect();
        let ir = slot.run.ir.clone();
        for (ix, lease) in old {
            self.leases.remove(&(lease.until, id, ix, lease.claim));
            let moved = ir.find(&before.node(ix).id);
            let held = |ix: &NodeIx| {
                self.runs.get(&id).is_some_and(|slot| slot.run.node(*ix).state == NodeState::Running)
            };
            if let Some(ix) = moved.filter(held) {
                self.put_lease(id, ix, Some(lease));
            }
        }
    }
}
