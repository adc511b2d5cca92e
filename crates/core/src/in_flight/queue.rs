//! Queues of tokens, one for each type of task and each function, in three bands of priority.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::InFlight;
use crate::ir::NodeIx;
use crate::run::NodeState;
use crate::{RunId, Timestamp};

/// The number of priority bands: high, normal, low.
pub(super) const BANDS: usize = 3;

/// The band of a node's priority (1 to 10): 0 goes first, then 1, then 2.
pub fn band(priority: u8) -> usize {
    match priority {
        8.. => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// A queued node. Void once its run has moved on; the claim that pops it checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) run: RunId,
    pub(super) node: NodeIx,
    pub(super) generation: u64,
    pub(super) queued_at: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) bands: [VecDeque<Token>; BANDS],
    /// The number of tokens at which void tokens are swept.
    sweep_at: usize,
}

impl Queue {
    pub(super) fn pop(&mut self, band: usize) -> Option<Token> {
        self.bands[band].pop_front()
    }

    /// When the first token of a band was queued, void or not.
    pub(super) fn first_at(&self, band: usize) -> Option<Timestamp> {
        self.bands[band].front().map(|token| token.queued_at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.bands.iter().map(VecDeque::len).sum()
    }
}

/// The names of the priority bands.
pub const PRIORITIES: [&str; BANDS] = ["high", "normal", "low"];

/// The number of tasks in a queue, by band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    pub queue: Arc<str>,
    pub bands: [BandDepth; BANDS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandDepth {
    /// Tasks that wait for a worker.
    pub waiting: usize,
    /// Tasks that a worker holds.
    pub claimed: usize,
    /// When the longest-waiting task was queued.
    pub oldest: Option<Timestamp>,
}

impl InFlight {
    pub(super) fn enqueue(&mut self, run: RunId, node: NodeIx, now: Timestamp) {
        let Some(slot) = self.runs.get(&run) else { return };
        let spec = slot.run.ir.node(node);
        let token = Token { run, node, generation: slot.generation, queued_at: now };
        let (name, band) = (spec.queue.clone(), band(slot.run.priority(node)));
        let queue = self.queues.entry(name.clone()).or_default();
        queue.bands[band].push_back(token);
        if queue.len() >= queue.sweep_at.max(4096) {
            self.sweep(&name);
        }
        self.nudges.queues.push(name);
    }

    /// Removes the token of a node that a worker has claimed by name. If the token stayed and the node were queued
    /// again, it would be valid once more, at its old place.
    pub(super) fn unqueue(&mut self, run: RunId, node: NodeIx) {
        let Some(slot) = self.runs.get(&run) else { return };
        let spec = slot.run.ir.node(node);
        if let Some(queue) = self.queues.get_mut(&spec.queue) {
            queue.bands[band(slot.run.priority(node))].retain(|token| (token.run, token.node) != (run, node));
        }
    }

    pub(super) fn is_valid(&self, token: &Token) -> bool {
        self.runs.get(&token.run).is_some_and(|slot| {
            slot.generation == token.generation
                && slot.run.hands_out()
                && slot.run.node(token.node).state == NodeState::Ready
        })
    }

    /// Drops void tokens. Doubling the threshold keeps the cost of a push constant on average.
    fn sweep(&mut self, name: &Arc<str>) {
        let Some(mut queue) = self.queues.remove(name) else { return };
        for band in &mut queue.bands {
            band.retain(|token| self.is_valid(token));
        }
        queue.sweep_at = 2 * queue.len();
        self.queues.insert(name.clone(), queue);
    }

    /// Exact depths. Visits every token and every node: for people and gauges, not for the hot path.
    pub fn depths(&self) -> Vec<QueueDepth> {
        let mut bands: BTreeMap<Arc<str>, [BandDepth; BANDS]> = BTreeMap::new();
        for (name, queue) in &self.queues {
            let bands = bands.entry(name.clone()).or_default();
            for (band_depth, tokens) in bands.iter_mut().zip(&queue.bands) {
                let valid = || tokens.iter().filter(|token| self.is_valid(token));
                (band_depth.waiting, band_depth.oldest) =
                    (valid().count(), valid().next().map(|token| token.queued_at));
            }
        }
        for run in self.runs() {
            for (ix, _) in run.held() {
                let spec = run.ir.node(ix);
                bands.entry(spec.queue.clone()).or_default()[band(run.priority(ix))].claimed += 1;
            }
        }
        bands.into_iter().map(|(queue, bands)| QueueDepth { queue, bands }).collect()
    }
}
