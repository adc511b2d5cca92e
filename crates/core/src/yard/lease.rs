//! Leases: how long a worker may be silent before its claims are taken back.

use serde::Serialize;

use super::*;
use crate::run::{ClaimRef, NodeState, ReleaseReason, Settled, Task};

/// Where a claim stands, as a heartbeat is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Held,
    /// Still held, but its run is being closed: stop, and say so.
    Stop,
    /// Taken back, settled, or never given: whatever comes of it will not count.
    Lost,
}

impl Yard {
    pub fn heartbeat(&mut self, claim: &ClaimRef, lease: Option<Duration>, now: Timestamp) -> Standing {
        let Some(slot) = self.runs.get_mut(&claim.run) else { return Standing::Lost };
        let Some(ix) = slot.run.ir.find(&claim.node) else { return Standing::Lost };
        if slot.run.standing(ix, claim.claim) != Settled::Applied {
            return Standing::Lost;
        }
        let stop = slot.run.closing.as_ref().is_some_and(|closing| closing.stop_running);
        let draining = slot.run.phase == Phase::Closing;
        if let Some(lease) = lease {
            self.put_lease(claim.run, ix, claim.claim, now.plus(lease));
        }
        if stop && draining { Standing::Stop } else { Standing::Held }
    }

    /// Takes back every claim whose worker has been silent too long.
    pub fn reclaim(&mut self, now: Timestamp, out: &mut Vec<Event>) -> usize {
        let mut reclaimed = 0;
        while let Some(&(_, id, ix, claim)) = self.leases.first().filter(|(until, ..)| *until <= now) {
            self.drop_lease(id, ix, claim);
            let max = self.limits.deliveries_max;
            let taken = self.act(id, now, out, |run, changes| {
                run.reclaim(ix, claim, ReleaseReason::LeaseExpired, max, now, changes)
            });
            reclaimed += usize::from(taken == Some(true));
        }
        reclaimed
    }

    pub(super) fn set_lease(&mut self, task: &Task, lease: Option<Duration>, now: Timestamp) {
        if let Some(lease) = lease {
            self.put_lease(task.run, task.ix, task.claim, now.plus(lease));
        }
    }

    fn put_lease(&mut self, id: RunId, ix: NodeIx, claim: u32, until: Timestamp) {
        self.drop_lease(id, ix, claim);
        if let Some(slot) = self.runs.get_mut(&id) {
            slot.leases.insert(ix, (until, claim));
            self.leases.insert((until, id, ix, claim));
        }
    }

    pub(super) fn drop_lease(&mut self, id: RunId, ix: NodeIx, claim: u32) {
        let Some(slot) = self.runs.get_mut(&id) else { return };
        if let Some((until, held)) = slot.leases.get(&ix).copied().filter(|(_, held)| *held == claim) {
            slot.leases.remove(&ix);
            self.leases.remove(&(until, id, ix, held));
        }
    }

    pub(super) fn forget_leases(&mut self, id: RunId, slot: &Slot) {
        for (ix, (until, claim)) in &slot.leases {
            self.leases.remove(&(*until, id, *ix, *claim));
        }
    }

    /// After a patch, indices have moved: leases follow their nodes.
    pub(super) fn move_leases(&mut self, id: RunId, before: &Ir) {
        let Some(slot) = self.runs.get_mut(&id) else { return };
        let old: Vec<_> = slot.leases.drain().collect();
        let ir = slot.run.ir.clone();
        for (ix, (until, claim)) in old {
            self.leases.remove(&(until, id, ix, claim));
            let moved = ir.find(&before.node(ix).id);
            let held = |ix: &NodeIx| {
                self.runs.get(&id).is_some_and(|slot| slot.run.node(*ix).state == NodeState::Running)
            };
            if let Some(ix) = moved.filter(held) {
                self.put_lease(id, ix, claim, until);
            }
        }
    }
}
