//! Joins: which edges fired, and which nodes they release.
//!
//! Deciding one node's edges costs as many steps as it has edges. Only a fork, a retry and a patch recount all joins.

use super::{Effect, NodeState, Phase, Run, Transition};
use crate::ir::{EdgeOn, Join, NodeIx, OnError, Role};

impl Run {
    /// Moves a node to its next state, and updates the counters. A move that the table forbids is a bug and is not
    /// made.
    pub(super) fn shift(&mut self, ix: NodeIx, on: Transition, effects: &mut Vec<Effect>) -> bool {
        let node = self.node_mut(ix);
        let Some(next) = node.state.after(on) else { return false };
        let (counted, asked, was) = (node.counts(), node.waits_for_approval(), node.state);
        node.state = next;
        let (counts, asks) = (node.counts(), node.waits_for_approval());
        self.counter = self.counter + u32::from(counts) - u32::from(counted);
        self.approvals = self.approvals + u32::from(asks) - u32::from(asked);
        if next == NodeState::Ready {
            effects.push(Effect::Ready(ix));
        } else if active(was) && !active(next) && self.parallelism().is_some() {
            effects.push(Effect::Left(ix));
        }
        true
    }

    /// Decides every edge that leaves a node which has just ended.
    pub(super) fn resolve_edges(&mut self, ix: NodeIx, effects: &mut Vec<Effect>) {
        let ir = self.ir.clone();
        for edge in &ir.node(ix).dependents {
            let fires = self.fires(ix, edge.on);
            let target = self.node_mut(edge.to);
            target.open_needs = target.open_needs.saturating_sub(1);
            target.fired += u32::from(fires);
            self.release_if_joined(edge.to, effects);
        }
        self.release_output_if_due(effects);
    }

    fn fires(&self, ix: NodeIx, on: EdgeOn) -> bool {
        match (self.node(ix).state, self.ir.node(ix).on_error) {
            (NodeState::Succeeded, _) | (NodeState::Failed, OnError::Continue) => on == EdgeOn::Success,
            (NodeState::Failed, OnError::Goto(_)) => on == EdgeOn::Failure,
            _ => false,
        }
    }

    fn is_joined(&self, ix: NodeIx) -> bool {
        let (node, spec) = (self.node(ix), self.ir.node(ix));
        spec.role == Role::Step && (node.open_needs == 0 || (spec.join == Join::Any && node.fired > 0))
    }

    fn release_if_joined(&mut self, ix: NodeIx, effects: &mut Vec<Effect>) {
        if self.node(ix).state == NodeState::Pending && self.is_joined(ix) {
            self.shift(ix, Transition::Release, effects);
        }
    }

    /// Releases the output step, which has no needs, once everything else is done.
    pub(super) fn release_output_if_due(&mut self, effects: &mut Vec<Effect>) {
        let Some(output) = self.ir.output else { return };
        if self.phase == Phase::Running && self.counter == 0 && self.approvals == 0 {
            self.shift(output, Transition::Release, effects);
        }
    }

    /// Whether no edge into a node fired: a worker claims its token only to skip it.
    pub(super) fn is_to_be_skipped(&self, ix: NodeIx) -> bool {
        self.ir.node(ix).needs > 0 && self.node(ix).fired == 0
    }

    /// Recounts every join from the states of the nodes, and releases or takes back the tokens that this changes.
    pub(super) fn recount_joins(&mut self, effects: &mut Vec<Effect>) {
        let ir = self.ir.clone();
        for ix in ir.indices() {
            let needs = ir.node(ix).needs;
            let node = self.node_mut(ix);
            (node.open_needs, node.fired) = (needs, 0);
        }
        for ix in ir.indices().filter(|ix| self.nodes[ix.index()].has_decided_edges()).collect::<Vec<_>>() {
            for edge in &ir.node(ix).dependents {
                let fires = self.fires(ix, edge.on);
                let target = self.node_mut(edge.to);
                target.open_needs = target.open_needs.saturating_sub(1);
                target.fired += u32::from(fires);
            }
        }
        for ix in ir.indices() {
            let node = self.node(ix);
            if node.state == NodeState::Ready && !node.has_started() && !self.is_joined(ix) {
                self.shift(ix, Transition::Reset, effects);
            }
            self.release_if_joined(ix, effects);
        }
        self.release_output_if_due(effects);
    }
}

fn active(state: NodeState) -> bool {
    matches!(state, NodeState::Ready | NodeState::Running)
}
