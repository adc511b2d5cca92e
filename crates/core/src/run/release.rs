//! Taking a claim back from a worker that is gone.

use super::*;
use crate::NodeError;

impl Run {
    /// Takes back a claim whose worker went silent or whose process restarted. The node is queued again with the same
    /// attempt; a node that has lost `deliveries_max` workers fails instead.
    pub fn reclaim(
        &mut self,
        ix: NodeIx,
        claim: u32,
        reason: ReleaseReason,
        deliveries_max: u32,
        now: Timestamp,
        out: &mut Changes,
    ) -> bool {
        if self.standing(ix, claim) != Settled::Applied {
            return false;
        }
        let deliveries = self.node(ix).deliveries;
        if self.phase == Phase::Closing {
            self.emit(EventKind::NodeCancelled { node: self.id_of(ix) }, now, out);
        } else if deliveries >= deliveries_max {
            let message = format!("{deliveries} workers were lost while they held it");
            self.fail_node(ix, NodeError::permanent("poisoned", message), now, out);
        } else {
            self.emit(EventKind::NodeReleased { node: self.id_of(ix), reason }, now, out);
        }
        self.conclude(now, out);
        true
    }

    /// Every claim that is held right now.
    pub fn held(&self) -> Vec<(NodeIx, u32)> {
        self.ir
            .indices()
            .filter(|&ix| self.node(ix).state == NodeState::Running)
            .map(|ix| (ix, self.node(ix).claim))
            .collect()
    }
}
