//! Concurrency keys: at most so many runs with a key are under way, the others wait in line.

use std::collections::VecDeque;

use super::InFlight;
use crate::run::{Concurrency, Event, Phase, Run};
use crate::{RunId, Timestamp};

#[derive(Debug, Default)]
pub(super) struct ConcurrencyKey {
    /// As the newest run with this key asked for.
    pub(super) limit: u32,
    pub(super) under_way: u32,
    pub(super) line: VecDeque<RunId>,
}

impl InFlight {
    /// The run stands in line, and starts if there is room. So do those before it, if it raised the limit: there is
    /// never a line before a gate that has room.
    pub(super) fn enter_concurrency_key(
        &mut self,
        id: RunId,
        concurrency: &Concurrency,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) {
        let concurrency_key = self.concurrency_keys.entry(concurrency.key.clone()).or_default();
        concurrency_key.limit = concurrency.limit.max(1);
        concurrency_key.line.push_back(id);
        let entering = concurrency_key.let_in();
        self.start_all(entering, now, out);
    }

    /// A run has ended; the next in line, if there is room for it.
    pub(super) fn leave_concurrency_key(&mut self, run: &Run) -> Option<RunId> {
        let concurrency = run.accepted.concurrency.as_ref()?;
        let concurrency_key = self.concurrency_keys.get_mut(&concurrency.key)?;
        match concurrency_key.line.iter().position(|waiting| *waiting == run.id) {
            // It was cancelled while it waited: no other run starts.
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

    /// A run that comes back from its history takes the place it had.
    pub(super) fn reenter_concurrency_key(&mut self, run: &Run) {
        let Some(concurrency) = &run.accepted.concurrency else { return };
        let concurrency_key = self.concurrency_keys.entry(concurrency.key.clone()).or_default();
        let is_new = concurrency_key.under_way == 0 && concurrency_key.line.is_empty();
        // One that has ended comes back to be retried, which may be refused: newer runs keep the limit they asked for.
        if is_new || !run.is_ended() {
            concurrency_key.limit = concurrency.limit.max(1);
        }
        if run.phase == Phase::Queued {
            concurrency_key.line.push_back(run.id);
        } else {
            concurrency_key.under_way += 1;
        }
    }

    /// Starts runs that wait for a key that has room, which the order of a restore can leave behind.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_flight::{Command, NewRun};
    use crate::ir::sketch::Sketch;
    use crate::run::{Accepted, Operation};
    use crate::{Hash, OperationId, Payload};

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn accept(in_flight: &mut InFlight, serial: u64, limit: u32) -> Vec<Event> {
        let mut accepted = Accepted::plain("w".into(), Sketch::chain(1).ir().hash, Payload::null());
        accepted.concurrency = Some(Concurrency { key: "k".into(), limit });
        let mut events = Vec::new();
        in_flight
            .accept(NewRun { id: RunId::new(NOW, serial, 0), accepted }, NOW, &mut events)
            .expect("accepted");
        events
    }

    fn command(in_flight: &mut InFlight, run: RunId, serial: u128, command: Command) -> Vec<Event> {
        let operation = Operation { id: OperationId::drawn(serial), command: Hash::of(b"command") };
        let mut events = Vec::new();
        // A refusal is an answer as well.
        let _ = in_flight.command(run, &operation, command, NOW, &mut events);
        events
    }

    /// An old run asked for a higher limit than those that came after it.
    #[test]
    fn a_refused_retry_lets_no_other_run_in() {
        let mut in_flight = InFlight::default();
        in_flight.learn(Sketch::chain(1).ir());
        let mut history = accept(&mut in_flight, 1, 2);
        let old = history[0].run;
        let cancel = Command::Cancel { by: "b".into(), reason: "r".into(), compensate: false, now: true };
        history.extend(command(&mut in_flight, old, 1, cancel));
        let old_run = Run::replay(&history, &|_| Some(Sketch::chain(1).ir())).expect("a whole history");
        assert!(old_run.is_ended());
        accept(&mut in_flight, 2, 1);
        accept(&mut in_flight, 3, 1);
        let mut events = Vec::new();
        in_flight.restore(vec![old_run], NOW, &mut events);
        // The id of the cancel with the hash of the same request: it is known, and nothing is retried.
        events.extend(command(&mut in_flight, old, 1, Command::Retry { by: "b".into() }));
        assert_eq!(events, Vec::new(), "one is under way, and one waits");
    }
}
