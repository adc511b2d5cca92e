//! Timers of waiting nodes: sleeps, retries and time-outs.

use super::*;
use crate::NodeError;

impl Run {
    /// Fires the timer of a waiting node. Stale and early calls change nothing.
    pub fn fire(&mut self, ix: NodeIx, claim: u32, now: Timestamp, out: &mut Changes) {
        let node = self.node(ix);
        if node.state != NodeState::Waiting || node.claim != claim {
            return;
        }
        let Some(wait) = node.wait.as_deref() else { return };
        if let Waiting::Children(children) = wait {
            match children.timeout_at {
                Some(at) if at <= now => {
                    let error =
                        NodeError::permanent("timeout", "the runs that it started did not end in time");
                    self.fail_node(ix, error, now, out);
                }
                _ => self.start_children(ix, now, out),
            }
            return self.conclude(now, out);
        }
        match wait.clone() {
            Waiting::Retry { until } if until <= now => {
                self.emit(EventKind::NodeWoken { node: self.id_of(ix) }, now, out);
            }
            Waiting::For(WaitFor::Timer { until }) if until <= now => self.succeed_with_null(ix, now, out),
            Waiting::For(WaitFor::Signal { timeout_at: Some(at), on_timeout, name }) if at <= now => {
                match on_timeout {
                    SignalTimeout::Continue => self.succeed_with_null(ix, now, out),
                    SignalTimeout::Fail => {
                        let error =
                            NodeError::permanent("timeout", format!("signal `{name}` did not come in time"));
                        self.fail_node(ix, error, now, out);
                    }
                }
            }
            Waiting::For(WaitFor::Approval(request)) if request.timeout_at.is_some_and(|at| at <= now) => {
                self.time_out_approval(ix, &request, now, out);
            }
            _ => return,
        }
        self.conclude(now, out);
    }

    fn succeed_with_null(&mut self, ix: NodeIx, now: Timestamp, out: &mut Changes) {
        self.emit(
            EventKind::NodeSucceeded { node: self.id_of(ix), output: Payload::null(), cached: false },
            now,
            out,
        );
    }

    fn time_out_approval(
        &mut self,
        ix: NodeIx,
        request: &ApprovalRequest,
        now: Timestamp,
        out: &mut Changes,
    ) {
        let decision = match request.on_timeout {
            ApprovalTimeout::Approve => Decision::Approved,
            ApprovalTimeout::Reject => Decision::Rejected,
            ApprovalTimeout::Fail => {
                let error = NodeError::permanent("timeout", "nobody decided in time");
                return self.fail_node(ix, error, now, out);
            }
        };
        let by = "timeout".into();
        let comment = "nobody decided in time".into();
        self.take_decision(ix, request.approval.clone(), decision, by, comment, now, out);
    }
}
