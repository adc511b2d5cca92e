//! Concurrency keys: a limited number of runs with the same key are under way, the others wait in line.

use std::collections::VecDeque;

use super::InFlight;
use crate::run::{Changes, Concurrency, Event, Phase, Run};
use crate::{RunId, Timestamp};

#[derive(Debug, Default)]
pub(super) struct ConcurrencyKey {
    /// The limit that the newest run with this key asked for.
    pub(super) limit: u32,
    pub(super) under_way: u32,
    pub(super) line: VecDeque<RunId>,
}

impl InFlight {
    /// Puts the run in line, and starts it if there is room. If it raised the limit, runs ahead of it start too: no run
    /// waits for a key that has room.
    pub(super) fn line_up(&mut self, id: RunId, now: Timestamp) -> Vec<(RunId, Changes)> {
        let concurrency = self.run(id).and_then(|run| run.accepted.concurrency.clone());
        let Some(Concurrency { key, limit }) = concurrency else { return Vec::new() };
        let concurrency_key = self.concurrency_keys.entry(key).or_default();
        concurrency_key.limit = limit.max(1);
        concurrency_key.line.push_back(id);
        let entering = concurrency_key.let_in();
        let start = |id| self.changing(id, |run, changes| run.start(now, changes));
        entering.into_iter().filter_map(start).collect()
    }

    /// Removes an ended run from its key. Returns the next run in line, if there is room for it.
    pub(super) fn leave_concurrency_key(&mut self, run: &Run) -> Option<RunId> {
        let concurrency = run.accepted.concurrency.as_ref()?;
        let concurrency_key = self.concurrency_keys.get_mut(&concurrency.key)?;
        match concurrency_key.line.iter().position(|waiting| *waiting == run.id) {
            // The run was cancelled while it waited: no other run starts.
            Some(place) => {
                concurrency_key.line.remove(place);
                return None;
            }
            None => concurrency_key.under_way = concurrency_key.under_way.saturating_sub(1),
        }
        let next = if concurrency_key.under_way < concurrency_key.limit {
            concurrency_key.line.pop_front()
        } else {
            None
        };
        concurrency_key.under_way += u32::from(next.is_some());
        if concurrency_key.under_way == 0 && concurrency_key.line.is_empty() {
            self.concurrency_keys.remove(&concurrency.key);
        }
        next
    }

    /// Puts a restored run in line for its key, or counts it as under way, as its history says.
    pub(super) fn reenter_concurrency_key(&mut self, run: &Run) {
        let Some(concurrency) = &run.accepted.concurrency else { return };
        if run.starts_at().is_some() {
            return;
        }
        let concurrency_key = self.concurrency_keys.entry(concurrency.key.clone()).or_default();
        concurrency_key.limit = concurrency.limit.max(1);
        if run.phase == Phase::Queued {
            concurrency_key.line.push_back(run.id);
        } else {
            concurrency_key.under_way += 1;
        }
    }

    /// Starts runs that wait for a key that has room, because the order of a restore can leave such runs behind.
    pub(super) fn admit_waiting(&mut self, now: Timestamp, out: &mut Vec<Event>) {
        let entering = self.concurrency_keys.values_mut().flat_map(ConcurrencyKey::let_in).collect();
        self.start_all(entering, now, out);
    }

    fn start_all(&mut self, entering: Vec<RunId>, now: Timestamp, out: &mut Vec<Event>) {
        for id in entering {
            self.act(id, now, out, |run, changes| run.start(now, changes));
        }
    }
}

impl ConcurrencyKey {
    fn let_in(&mut self) -> Vec<RunId> {
        let room = self.limit.saturating_sub(self.under_way) as usize;
        let entering: Vec<RunId> = self.line.drain(..room.min(self.line.len())).collect();
        self.under_way += entering.len() as u32;
        entering
    }
}
