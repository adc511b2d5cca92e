//! Claims of tokens, and their settlements.

use std::ops::Bound;
use std::sync::Arc;

use super::queue::BANDS;
use super::*;
use crate::ir::queue_name::takes_turns;
use crate::run::{ClaimRef, Progress, Refusal, ReleaseReason, Settled, Settlement, Task, TimeLimit};

/// A worker's request for tasks.
#[derive(Clone, Debug)]
pub struct Want {
    pub worker: Arc<str>,
    /// Queue names; a name that ends in `*` is a prefix pattern. Earlier names are served first, except that functions
    /// take turns ([`takes_turns`]).
    pub queues: Arc<[Arc<str>]>,
    pub max: usize,
    /// How long a claim lasts without a heartbeat. With `None`, the claim lasts as long as the process.
    pub lease: Option<Duration>,
}

/// A worker that claims a node by name.
#[derive(Clone, Copy, Debug)]
pub struct Taker<'a> {
    pub worker: &'a Arc<str>,
    /// The lease, as in [`Want::lease`].
    pub lease: Option<Duration>,
}

impl Want {
    /// A request for no tasks, for a call that only settles.
    pub fn nothing(worker: Arc<str>) -> Self {
        Self { worker, queues: [].into(), max: 0, lease: None }
    }

    /// Whether tokens of this queue are wanted.
    pub fn takes(&self, queue: &str) -> bool {
        takes(&self.queues, queue)
    }
}

/// Whether one of these names or patterns matches the queue.
pub fn takes(queues: &[Arc<str>], queue: &str) -> bool {
    queues.iter().any(|name| match name.strip_suffix('*') {
        Some(prefix) => queue.starts_with(prefix),
        None => **name == *queue,
    })
}

impl InFlight {
    pub fn settle(&mut self, settlement: Settlement, now: Timestamp, out: &mut Vec<Event>) -> Settled {
        let run = settlement.claim.run;
        if let Some(ix) = self.run(run).and_then(|run| run.ir.find(&settlement.claim.node)) {
            self.drop_lease(run, ix, settlement.claim.claim);
        }
        // A run that is not here has ended: settlements about it are too late.
        self.act(run, now, out, |run, changes| run.settle(settlement, now, changes)).unwrap_or(Settled::Stale)
    }

    /// Records progress that the holder of a claim reports. The lease does not change.
    pub fn progress(
        &mut self,
        claim: &ClaimRef,
        progress: Progress,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Result<Settled, Refusal> {
        self.act(claim.run, now, out, |run, changes| run.progress(claim, progress, now, changes))
            .unwrap_or(Ok(Settled::Stale))
    }

    /// Claims up to `want.max` tokens: higher priorities first, then in the order of the queues, then in the order in
    /// which they were queued.
    pub fn claim(&mut self, want: &Want, now: Timestamp, out: &mut Vec<Event>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for band in 0..BANDS {
            if tasks.len() >= want.max {
                break;
            }
            for queue in self.wanted_queues(want, band) {
                self.claim_from(&queue, band, want, &mut tasks, now, out);
            }
        }
        tasks
    }

    fn claim_from(
        &mut self,
        queue: &Arc<str>,
        band: usize,
        want: &Want,
        tasks: &mut Vec<Task>,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) {
        while tasks.len() < want.max {
            let Some(token) = self.queues.get_mut(queue).and_then(|queue| queue.pop(band)) else { return };
            if !self.is_valid(&token) {
                continue;
            }
            let claimed = self
                .act(token.run, now, out, |run, changes| run.claim(token.node, &want.worker, now, changes));
            if let Some(mut task) = claimed.flatten() {
                task.queued_at = token.queued_at;
                self.set_lease(&mut task, want.lease, now);
                tasks.push(task);
            }
        }
    }

    /// Claims one node by name, for a worker that took its token from a queue by itself. `None` if the node has no
    /// token to claim.
    pub fn claim_node(
        &mut self,
        run: RunId,
        node: &str,
        by: &Taker<'_>,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Option<Task> {
        self.note_missing(run);
        let slot = self.runs.get(&run)?;
        let ix = slot.run.ir.find(node)?;
        // In a run that caps its parallelism, nodes that wait for a slot have no token.
        if slot
            .parallelism_state
            .as_ref()
            .is_some_and(|parallelism_state| !parallelism_state.active.contains(&ix))
        {
            return None;
        }
        let claimed = self.act(run, now, out, |run, changes| run.claim(ix, by.worker, now, changes));
        let mut task = claimed.flatten()?;
        self.unqueue(run, ix);
        self.set_lease(&mut task, by.lease, now);
        Some(task)
    }

    /// The task of a valid claim, as its holder received it. The time when it was queued is no longer known.
    pub fn held_task(&mut self, claim: &ClaimRef) -> Option<Task> {
        self.note_missing(claim.run);
        let slot = self.runs.get(&claim.run)?;
        let ix = slot.run.ir.find(&claim.node)?;
        let mut task = slot.run.held_task(ix, claim.claim)?;
        let ends = slot.leases.get(&ix).and_then(|lease| lease.limit);
        let lasts = self.attempt_limit(&slot.run.ir, ix);
        task.limit = lasts.zip(ends).map(|(lasts, ends)| TimeLimit { lasts, ends });
        Some(task)
    }

    /// Records that a worker which took a token by itself went silent. This counts as a delivery: the node is queued
    /// again, or fails as poisoned. Returns whether there was such a token.
    pub fn lose_node(
        &mut self,
        run: RunId,
        node: &str,
        worker: &Arc<str>,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> bool {
        let Some(task) = self.claim_node(run, node, &Taker { worker, lease: None }, now, out) else {
            return false;
        };
        self.drop_lease(run, task.ix, task.claim);
        let max = self.limits.deliveries_max;
        let lost = self.act(run, now, out, |run, changes| {
            run.reclaim(task.ix, task.claim, ReleaseReason::LeaseExpired, max, now, changes)
        });
        lost == Some(true)
    }

    /// The queues with tokens of a band, in the order in which a worker takes from them.
    fn wanted_queues(&self, want: &Want, band: usize) -> Vec<Arc<str>> {
        let turns = want.queues.iter().position(|wanted| takes_turns(wanted));
        let mut line: Vec<(usize, Option<Timestamp>, &Arc<str>)> = Vec::new();
        for (place, wanted) in want.queues.iter().enumerate() {
            let by_age = takes_turns(wanted);
            let rank = turns.filter(|_| by_age).unwrap_or(place);
            self.each_alike(wanted, |name, queue| {
                if let Some(first_at) = queue.first_at(band) {
                    line.push((rank, by_age.then_some(first_at), name));
                }
            });
        }
        line.sort_unstable();
        line.into_iter().map(|(_, _, name)| name.clone()).collect()
    }

    fn each_alike<'s>(&'s self, wanted: &str, mut each: impl FnMut(&'s Arc<str>, &'s Queue)) {
        let Some(prefix) = wanted.strip_suffix('*') else {
            return self.queues.get_key_value(wanted).into_iter().for_each(|(name, queue)| each(name, queue));
        };
        let from = self.queues.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(|(name, _)| name.starts_with(prefix)).for_each(|(name, queue)| each(name, queue));
    }
}

impl InFlight {
    /// Whether a claim might find something. Void tokens count, because a claim removes them.
    pub fn has_work(&self, want: &Want) -> bool {
        self.queues.iter().any(|(name, queue)| !queue.is_empty() && want.takes(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Payload;
    use crate::ir::queue_name;
    use crate::ir::sketch::Sketch;
    use crate::run::{EndStatus, EventKind, TaskOutcome};

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn in_flight(ir: &Arc<Ir>, parallelism: Option<u32>, deliveries_max: u32) -> (InFlight, RunId) {
        let mut in_flight = InFlight::new(Limits { deliveries_max, ..Limits::default() });
        in_flight.learn(ir.clone());
        let id = RunId::new(NOW, 7, 0);
        let accepted = Accepted { parallelism, ..Accepted::plain("w".into(), ir.hash, Payload::null()) };
        in_flight.accept(NewRun { id, accepted }, NOW, &mut Vec::new()).unwrap();
        (in_flight, id)
    }

    #[test]
    fn a_node_that_is_claimed_by_name_is_settled_like_any_other() {
        let (mut in_flight, id) = in_flight(&Sketch::chain(2).ir(), None, 3);
        let worker: Arc<str> = "plain".into();
        let by = Taker { worker: &worker, lease: None };
        let mut out = Vec::new();
        assert!(in_flight.claim_node(id, "n1", &by, NOW, &mut out).is_none(), "it is not ready");
        assert!(in_flight.claim_node(id, "nowhere", &by, NOW, &mut out).is_none());
        let task = in_flight.claim_node(id, "n0", &by, NOW, &mut out).unwrap();
        assert!(in_flight.claim_node(id, "n0", &by, NOW, &mut out).is_none(), "it is held");
        let claim = ClaimRef { run: id, node: task.node, claim: task.claim };
        let settlement = Settlement { claim, outcome: TaskOutcome::Succeeded(Payload::null()) };
        assert_eq!(in_flight.settle(settlement.clone(), NOW, &mut out), Settled::Applied);
        assert_eq!(in_flight.settle(settlement, NOW, &mut out), Settled::Duplicate);
        let want = Want { worker, queues: ["work".into()].into(), max: 9, lease: None };
        let next: Vec<_> = in_flight.claim(&want, NOW, &mut out).into_iter().map(|task| task.node).collect();
        assert_eq!(next, ["n1".into()], "the token of the first is void");
    }

    #[test]
    fn functions_take_turns_by_the_age_of_their_first_task() {
        let own = |name: &str| queue_name::of_function(name).to_string();
        let node = |sketch: Sketch, name: &str| sketch.node(name, &[]).with(|node| node.queue = own(name));
        let (mut in_flight, _) = in_flight(&node(Sketch::new(), "zoom").ir(), None, 3);
        let later = Timestamp::from_millis(2_000);
        let ir = node(node(Sketch::new(), "alter"), "other").ir();
        in_flight.learn(ir.clone());
        let accepted = Accepted::plain("w".into(), ir.hash, Payload::null());
        let run = NewRun { id: RunId::new(later, 8, 0), accepted };
        in_flight.accept(run, later, &mut Vec::new()).unwrap();
        let want = |queues: &[&str]| Want {
            queues: queues.iter().map(|&queue| queue.into()).collect(),
            max: 1,
            ..Want::nothing("w".into())
        };
        let mut claim = |queues: &[&str]| {
            in_flight.claim(&want(queues), later, &mut Vec::new()).first().map(|task| task.node.to_string())
        };
        assert_eq!(claim(&["function:other", "function:nothing"]).as_deref(), Some("other"));
        assert_eq!(claim(&["function:alter", "function:zoom"]).as_deref(), Some("zoom"), "it came first");
        assert_eq!(claim(&["function"]), None, "that is the queue which functions share");
        assert_eq!(claim(&["http", "function:*"]).as_deref(), Some("alter"));
    }

    #[test]
    fn where_parallelism_is_capped_only_what_has_a_token_can_be_claimed_by_name() {
        let (mut in_flight, id) = in_flight(&Sketch::new().node("a", &[]).node("b", &[]).ir(), Some(1), 3);
        let worker: Arc<str> = "plain".into();
        let by = Taker { worker: &worker, lease: None };
        assert!(in_flight.claim_node(id, "b", &by, NOW, &mut Vec::new()).is_none());
        assert!(in_flight.claim_node(id, "a", &by, NOW, &mut Vec::new()).is_some());
    }

    #[test]
    fn tokens_that_are_lost_again_and_again_poison_their_node() {
        let (mut in_flight, id) = in_flight(&Sketch::chain(1).ir(), None, 2);
        let (worker, mut out): (Arc<str>, _) = ("plain".into(), Vec::new());
        assert!(in_flight.lose_node(id, "n0", &worker, NOW, &mut out));
        assert_eq!(in_flight.run(id).unwrap().counter, 1);
        assert!(in_flight.lose_node(id, "n0", &worker, NOW, &mut out));
        assert!(!in_flight.lose_node(id, "n0", &worker, NOW, &mut out));
        let ended = out.iter().any(|event| {
            matches!(&event.kind, EventKind::RunEnded { status: EndStatus::Failed, error: Some(error), .. }
                if &*error.code == "poisoned")
        });
        assert!(ended, "{out:?}");
    }
}
