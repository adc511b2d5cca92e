//! Concurrency keys: at most so many runs with a key are under way, the others wait in line.

use std::collections::VecDeque;

use super::Yard;
use crate::run::{Concurrency, Event, Phase, Run};
use crate::{RunId, Timestamp};

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// As the newest run with this key asked for.
    pub(super) limit: u32,
    pub(super) under_way: u32,
    pub(super) line: VecDeque<RunId>,
}

impl Yard {
    /// Whether the run may start now; otherwise it stands in line.
    pub(super) fn enter_gate(&mut self, id: RunId, concurrency: &Concurrency) -> bool {
        let gate = self.gates.entry(concurrency.key.clone()).or_default();
        gate.limit = concurrency.limit.max(1);
        let enters = gate.under_way < gate.limit && gate.line.is_empty();
        if enters {
            gate.under_way += 1;
        } else {
            gate.line.push_back(id);
        }
        enters
    }

    /// A run has ended; the next in line, if there is room for it.
    pub(super) fn leave_gate(&mut self, run: &Run) -> Option<RunId> {
        let concurrency = run.accepted.concurrency.as_ref()?;
        let gate = self.gates.get_mut(&concurrency.key)?;
        match gate.line.iter().position(|waiting| *waiting == run.id) {
            // It was cancelled while it waited: nobody moves up.
            Some(place) => {
                gate.line.remove(place);
                return None;
            }
            None => gate.under_way = gate.under_way.saturating_sub(1),
        }
        let next = if gate.under_way < gate.limit { gate.line.pop_front() } else { None };
        gate.under_way += u32::from(next.is_some());
        if gate.under_way == 0 && gate.line.is_empty() {
            self.gates.remove(&concurrency.key);
        }
        next
    }

    /// A run that comes back from its history takes the place it had.
    pub(super) fn reenter_gate(&mut self, run: &Run) {
        let Some(concurrency) = &run.accepted.concurrency else { return };
        let gate = self.gates.entry(concurrency.key.clone()).or_default();
        gate.limit = concurrency.limit.max(1);
        if run.phase == Phase::Queued {
            gate.line.push_back(run.id);
        } else {
            gate.under_way += 1;
        }
    }

    /// Lets in whoever stands before a gate that has room, which a limit raised before a restart can leave behind.
    pub(super) fn open_gates(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let mut entering = Vec::new();
        for gate in self.gates.values_mut() {
            while gate.under_way < gate.limit
                && let Some(next) = gate.line.pop_front()
            {
                gate.under_way += 1;
                entering.push(next);
            }
        }
        for id in entering {
            self.act(id, now, out, |run, changes| run.start(now, changes));
        }
    }
}
