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
    /// The run stands in line, and starts if there is room. So do those before it, if it raised the limit: there is
    /// never a line before a gate that has room.
    pub(super) fn enter_gate(
        &mut self,
        id: RunId,
        concurrency: &Concurrency,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) {
        let gate = self.gates.entry(concurrency.key.clone()).or_default();
        gate.limit = concurrency.limit.max(1);
        gate.line.push_back(id);
        let entering = gate.let_in();
        self.start_all(entering, now, out);
    }

    /// A run has ended; the next in line, if there is room for it.
    pub(super) fn leave_gate(&mut self, run: &Run) -> Option<RunId> {
        let concurrency = run.accepted.concurrency.as_ref()?;
        let gate = self.gates.get_mut(&concurrency.key)?;
        match gate.line.iter().position(|waiting| *waiting == run.id) {
            // It was cancelled while it waited: no other run starts.
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

    /// Starts runs that wait for a key that has room, which the order of a restore can leave behind.
    pub(super) fn open_gates(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let entering = self.gates.values_mut().flat_map(Gate::let_in).collect();
        self.start_all(entering, now, out);
    }

    fn start_all(&mut self, entering: Vec<RunId>, now: Timestamp, out: &mut Vec<Event>) {
        for id in entering {
            self.act(id, now, out, |run, changes| run.start(now, changes));
        }
    }
}

impl Gate {
    fn let_in(&mut self) -> Vec<RunId> {
        let room = self.limit.saturating_sub(self.under_way) as usize;
        let entering: Vec<RunId> = self.line.drain(..room.min(self.line.len())).collect();
        self.under_way += entering.len() as u32;
        entering
    }
}
