//! Timers: delayed starts, retries, sleeps, time-outs, deadlines.

use super::*;

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    Deadline,
    /// The run's delayed start.
    Start,
    /// The end of the time that workers have to stop tasks of a closing run.
    Stop,
    Node {
        node: NodeIx,
        claim: u32,
    },
}

impl InFlight {
    /// When the next timer is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _, _)| *at)
    }

    /// Fires every due timer, and returns how many fired. Timers that are set meanwhile and due at once are left to the
    /// next call.
    pub fn fire_due(&mut self, now: Timestamp, out: &mut Vec<Event>) -> usize {
        let due: Vec<_> = self.timers.iter().take_while(|(at, _, _)| *at <= now).copied().collect();
        let mut fired = 0;
        for (at, id, key) in due {
            // An earlier timer may have ended the run.
            if !self.timers.remove(&(at, id, key)) {
                continue;
            }
            if let Some(slot) = self.runs.get_mut(&id) {
                slot.timers.remove(&(at, key));
            }
            let stop_by = self.stop_by(now);
            self.act(id, now, out, |run, changes| match key {
                TimerKey::Deadline => run.expire(stop_by, now, changes),
                TimerKey::Start => run.come_due(now, changes),
                TimerKey::Stop => run.stop_overdue(now, changes),
                TimerKey::Node { node, claim } => run.fire(node, claim, now, changes),
            });
            fired += 1;
        }
        fired
    }

    pub(super) fn set_timer(&mut self, id: RunId, at: Timestamp, key: TimerKey) {
        let Some(slot) = self.runs.get_mut(&id) else { return };
        slot.timers.insert((at, key));
        self.nudges.timers |= self.timers.first().is_none_or(|(first, _, _)| at < *first);
        self.timers.insert((at, id, key));
    }

    pub(super) fn forget_timers(&mut self, id: RunId, slot: &Slot) {
        for (at, key) in &slot.timers {
            self.timers.remove(&(*at, id, *key));
        }
    }
}
