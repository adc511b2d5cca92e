//! Repeating a run: from its failed nodes (retry), or from any node as another run (fork).

use std::sync::Arc;

use super::*;
use crate::ir::{OnError, Role};

impl Run {
    /// Starts an ended run over: resets the nodes that failed, were cancelled or were undone, and all nodes after them.
    pub fn retry(&mut self, by: Arc<str>, now: Timestamp, out: &mut Changes) -> Result<(), Refusal> {
        let ended = matches!(self.phase, Phase::Ended(EndStatus::Failed | EndStatus::Cancelled));
        self.refuse_unless(ended, "retried")?;
        let again = self.with_descendants(self.ir.indices().filter(|&ix| self.is_undone(ix)).collect());
        if again.is_empty() {
            return Err(Refusal::NothingToRetry);
        }
        let reset = again.into_iter().map(|ix| self.id_of(ix)).collect();
        self.emit(EventKind::RunRetried { by, reset, operation: None }, now, out);
        self.conclude(now, out);
        Ok(())
    }

    fn is_undone(&self, ix: NodeIx) -> bool {
        let (node, spec) = (self.node(ix), self.ir.node(ix));
        match (spec.role, node.state) {
            (Role::Compensation { .. }, _) => false,
            (Role::Output, state) => state != NodeState::Succeeded,
            (Role::Step, NodeState::Failed) => spec.on_error == OnError::Fail,
            (Role::Step, NodeState::Succeeded) => {
                spec.compensation.is_some_and(|undo| self.node(undo).has_started())
            }
            (Role::Step, NodeState::Skipped) => false,
            (Role::Step, _) => true,
        }
    }

    /// These nodes and everything that depends on them, with the compensations and the output step.
    fn with_descendants(&self, from: Vec<NodeIx>) -> Vec<NodeIx> {
        let mut marked = vec![false; self.nodes.len()];
        let mut open = from;
        while let Some(ix) = open.pop() {
            if !std::mem::replace(&mut marked[ix.index()], true) {
                let spec = self.ir.node(ix);
                open.extend(spec.dependents.iter().map(|edge| edge.to));
                open.extend(spec.compensation);
                open.extend(self.ir.output);
            }
        }
        self.ir.indices().filter(|ix| marked[ix.index()]).collect()
    }

    pub(super) fn on_retried(&mut self, reset: &[Arc<str>], effects: &mut Vec<Effect>) -> bool {
        if !self.is_ended() {
            return false;
        }
        let mut ignored = Vec::new();
        for ix in reset.iter().filter_map(|id| self.ir.find(id)).collect::<Vec<_>>() {
            // Claim numbers keep increasing, so that a claim from before the retry stays stale.
            let node = self.node_mut(ix);
            *node = NodeRun { claim: node.claim, ..NodeRun::default() };
        }
        (self.phase, self.delayed) = (Phase::Running, false);
        self.attempt += 1;
        (self.closing, self.error, self.ended_at, self.deadline) = (None, None, None, None);
        self.recount_joins(&mut ignored);
        effects.push(Effect::Rewired);
        true
    }

    /// The results that a fork from `node` takes over: all those that do not depend on it.
    pub fn seeds_before(&self, node: &Arc<str>) -> Result<Vec<Seed>, Refusal> {
        let from = self.ir.find(node).filter(|&ix| self.ir.node(ix).role == Role::Step);
        let from = from.ok_or_else(|| Refusal::UnknownNode(node.clone()))?;
        let again = self.with_descendants(vec![from]);
        let kept = self.ir.steps().filter(|(ix, _)| again.binary_search(ix).is_err());
        Ok(kept.filter_map(|(ix, _)| self.seed_of(ix)).collect())
    }

    fn seed_of(&self, ix: NodeIx) -> Option<Seed> {
        let node = self.node(ix);
        let end = match node.state {
            NodeState::Succeeded => SeedEnd::Succeeded(node.output_or_null()),
            NodeState::Skipped => SeedEnd::Skipped,
            NodeState::Failed if self.ir.node(ix).on_error != OnError::Fail => {
                SeedEnd::Failed(node.error.as_deref().cloned()?)
            }
            _ => return None,
        };
        Some(Seed { node: self.id_of(ix), end })
    }
}
