//! Decisions on approvals.

use std::sync::Arc;

use super::*;
use crate::NodeError;

impl Run {
    pub fn decide(
        &mut self,
        approval: &ApprovalId,
        decision: Decision,
        by: &Arc<str>,
        comment: &Arc<str>,
        now: Timestamp,
        out: &mut Changes,
    ) -> Result<(), Refusal> {
        let waiting =
            self.ir.indices().find(|&ix| self.waits_for(ix, approval)).ok_or(Refusal::NotPending)?;
        self.take_decision(waiting, approval.clone(), decision, by.clone(), comment.clone(), now, out);
        self.conclude(now, out);
        Ok(())
    }

    fn waits_for(&self, ix: NodeIx, approval: &ApprovalId) -> bool {
        let node = self.node(ix);
        node.state == NodeState::Waiting
            && matches!(node.wait.as_deref(),
                Some(Waiting::For(WaitFor::Approval(request))) if request.approval == *approval)
    }

    #[expect(clippy::too_many_arguments, reason = "a decision is who, what, why, about which node, and when")]
    pub(super) fn take_decision(
        &mut self,
        ix: NodeIx,
        approval: ApprovalId,
        decision: Decision,
        by: Arc<str>,
        comment: Arc<str>,
        now: Timestamp,
        out: &mut Changes,
    ) {
        let node = self.id_of(ix);
        let decided = EventKind::ApprovalDecided {
            node: node.clone(),
            approval,
            decision,
            by: by.clone(),
            comment: comment.clone(),
            operation: None,
        };
        self.emit(decided, now, out);
        match decision {
            Decision::Approved => {
                let output = serde_json::json!({"decision": "approved", "by": *by, "comment": *comment});
                let output = Payload::from_value(&output);
                self.emit(EventKind::NodeSucceeded { node, output, cached: false }, now, out);
            }
            Decision::Rejected => {
                let because = if comment.is_empty() { String::new() } else { format!(": {comment}") };
                let error = NodeError::permanent("rejected", format!("rejected by {by}{because}"));
                self.fail_node(ix, error, now, out);
            }
        }
    }
}
