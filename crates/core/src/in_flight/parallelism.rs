//! The cap on how many nodes of one run are queued or held at once.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use super::InFlight;
use crate::ir::NodeIx;
use crate::run::{NodeState, Run};
use crate::{RunId, Timestamp};

/// A run's own ready queue: priority first, then age.
#[derive(Debug)]
pub(super) struct Parallelism {
    cap: u32,
    pub(super) active: HashSet<NodeIx>,
    pub(super) ready: BTreeSet<(Reverse<u8>, u64, NodeIx)>,
    pub(super) arrivals: u64,
}

impl Parallelism {
    pub(super) fn new(cap: u32) -> Self {
        Self { cap: cap.max(1), active: HashSet::new(), ready: BTreeSet::new(), arrivals: 0 }
    }

    /// Rebuilds the slots after indices have moved: held nodes stay active, queued nodes line up again.
    pub(super) fn rebuild(&mut self, run: &Run) {
        self.ready.clear();
        self.active = run.ir.indices().filter(|&ix| run.node(ix).state == NodeState::Running).collect();
    }

    fn arrive(&mut self, priority: u8, node: NodeIx) {
        // A token that was handed back stays active.
        if !self.active.contains(&node) {
            self.arrivals += 1;
            self.ready.insert((Reverse(priority), self.arrivals, node));
        }
    }

    fn next(&mut self) -> Option<NodeIx> {
        if self.active.len() >= self.cap as usize {
            return None;
        }
        let (_, _, node) = self.ready.pop_first()?;
        self.active.insert(node);
        Some(node)
    }
}

impl InFlight {
    pub(super) fn token_ready(&mut self, id: RunId, node: NodeIx, now: Timestamp) {
        let Some(slot) = self.runs.get_mut(&id) else { return };
        let Some(parallelism_state) = &mut slot.parallelism_state else {
            // A paused run lines its tokens up again when it is resumed.
            if slot.run.hands_out() {
                self.enqueue(id, node, now);
            }
            return;
        };
        let was_active = parallelism_state.active.contains(&node);
        parallelism_state.arrive(slot.run.priority(node), node);
        if was_active && slot.run.hands_out() {
            self.enqueue(id, node, now);
        }
        self.fill_parallelism(id, now);
    }

    pub(super) fn token_left(&mut self, id: RunId, node: NodeIx, now: Timestamp) {
        if let Some(parallelism_state) =
            self.runs.get_mut(&id).and_then(|slot| slot.parallelism_state.as_mut())
        {
            parallelism_state.active.remove(&node);
            self.fill_parallelism(id, now);
        }
    }

    fn fill_parallelism(&mut self, id: RunId, now: Timestamp) {
        loop {
            let Some(slot) = self.runs.get_mut(&id) else { return };
            if !slot.run.hands_out() {
                return;
            }
            let Some(node) =
                slot.parallelism_state.as_mut().and_then(|parallelism_state| parallelism_state.next())
            else {
                return;
            };
            // Nodes that were cancelled while they lined up make room for the next.
            if slot.run.node(node).state == NodeState::Ready {
                self.enqueue(id, node, now);
            } else if let Some(parallelism_state) = slot.parallelism_state.as_mut() {
                parallelism_state.active.remove(&node);
            }
        }
    }
}
