//! Restores runs from their histories.

use super::*;
use crate::run::ReleaseReason;

impl InFlight {
    /// Puts runs back as their histories say they were. Held claims are void, because their holders are gone. Ended
    /// runs may be restored too, to be retried.
    ///
    /// All runs are in place before the first claim is taken back, because that can end a run: its parent has to be
    /// told, and the next run in line has to start.
    pub fn restore(&mut self, runs: Vec<Run>, now: Timestamp, out: &mut Vec<Event>) {
        let placed: Vec<RunId> = runs.into_iter().filter_map(|run| self.put_back(run, now)).collect();
        for &id in &placed {
            self.void_claims(id, now, out);
        }
        for &id in &placed {
            self.cancel_if_stopped(id, now, out);
        }
        self.admit_waiting(now, out);
    }

    fn put_back(&mut self, run: Run, now: Timestamp) -> Option<RunId> {
        let id = run.id;
        if self.runs.contains_key(&id) {
            return None;
        }
        self.learn(run.ir.clone());
        if let Some(key) = &run.accepted.idempotency {
            self.keys.insert(key.key.clone(), (key.body, id));
        }
        self.reenter_concurrency_key(&run);
        let generation = self.next_generation();
        self.runs.insert(id, Slot::new(run, generation));
        self.rewire(id, now);
        Some(id)
    }

    fn void_claims(&mut self, id: RunId, now: Timestamp, out: &mut Vec<Event>) {
        let held = self.run(id).map(Run::held).unwrap_or_default();
        let max = self.limits.deliveries_max;
        for (ix, claim) in held {
            self.act(id, now, out, |run, changes| {
                run.reclaim(ix, claim, ReleaseReason::Restart, max, now, changes)
            });
        }
    }

    /// Cancels a child that its parent has stopped. Cancelling it twice does no harm.
    fn cancel_if_stopped(&mut self, id: RunId, now: Timestamp, out: &mut Vec<Event>) {
        let Some(link) = self.run(id).and_then(|run| run.accepted.parent.clone()) else { return };
        self.note_missing(link.run);
        let cancels = self.run(link.run).and_then(|parent| parent.cancels_child(&link));
        if let Some((compensate, stop_by)) = cancels {
            self.cancel_child(ChildToCancel { child: id, compensate, stop_by }, now, out);
        }
    }

    /// Removes a restored run that is still ended, because it was not retried.
    pub(super) fn drop_if_ended(&mut self, id: RunId, now: Timestamp, out: &mut Vec<Event>) {
        if self.runs.get(&id).is_some_and(|slot| slot.run.is_ended())
            && let Some(slot) = self.runs.remove(&id)
            && let Some(next) = self.leave_concurrency_key(&slot.run)
        {
            self.act(next, now, out, |run, changes| run.start(now, changes));
        }
    }
}
