//! How a run ends: by completing, by failing, or by being cancelled.
//!
//! A closing run starts no new node and drains its running tasks; then it compensates the nodes that succeeded, newest
//! first, one at a time; then it ends.

use super::*;
use crate::error::RunError;
use crate::ir::Role;

impl Run {
    /// Closes the run. With `stop_by`, running tasks are asked to stop by then; without it they may finish.
    pub(super) fn close(
        &mut self,
        outcome: Outcome,
        error: RunError,
        stop_by: Option<Timestamp>,
        compensate: bool,
        now: Timestamp,
        out: &mut Changes,
    ) {
        let stop_running = stop_by.is_some();
        let closing =
            EventKind::RunClosing { outcome, error, stop_running, compensate, stop_by, operation: None };
        self.emit(closing, now, out);
        self.stop_overdue(now, out);
    }

    /// Ends the run, or moves it to its next phase, once nothing is in flight. Called at the end of each command.
    pub(super) fn conclude(&mut self, now: Timestamp, out: &mut Changes) {
        if self.counter > 0 || self.approvals > 0 {
            return;
        }
        match self.phase {
            Phase::Running => {
                let output = self.result();
                self.emit(
                    EventKind::RunEnded { status: EndStatus::Succeeded, output, error: None },
                    now,
                    out,
                );
            }
            Phase::Closing if self.next_compensation().is_some() => {
                self.emit(EventKind::RunCompensating {}, now, out);
            }
            Phase::Closing | Phase::Compensating => self.end_closed(now, out),
            Phase::Queued | Phase::Ended(_) => {}
        }
    }

    /// The output step's value, or that of the only node that nothing depends on.
    fn result(&self) -> Payload {
        let from = self.ir.output.or(match self.ir.sinks[..] {
            [only] => Some(only),
            _ => None,
        });
        from.map_or_else(Payload::null, |ix| self.node(ix).output_or_null())
    }

    fn end_closed(&mut self, now: Timestamp, out: &mut Changes) {
        let Some(closing) = self.closing.clone() else { return };
        let mut error = closing.error;
        error.not_compensated = self.failed_compensations();
        let status = closing.outcome.into();
        self.emit(EventKind::RunEnded { status, output: Payload::null(), error: Some(error) }, now, out);
    }

    fn failed_compensations(&self) -> Vec<Arc<str>> {
        self.ir
            .indices()
            .filter_map(|ix| match self.ir.node(ix).role {
                Role::Compensation { of } if self.node(ix).state == NodeState::Failed => Some(self.id_of(of)),
                _ => None,
            })
            .collect()
    }

    /// Cancels nodes that have not started and nodes that wait. Running nodes are left to their workers.
    pub(super) fn on_closing(&mut self, closing: Closing, at: Timestamp, effects: &mut Vec<Effect>) -> bool {
        let hurried = self.phase == Phase::Closing;
        if !matches!(self.phase, Phase::Queued | Phase::Running | Phase::Closing) {
            return false;
        }
        self.phase = Phase::Closing;
        self.closing = Some(closing);
        self.paused = false;
        effects.extend(self.stop_by().map(|at| Effect::StopBy { at }));
        if hurried {
            return true;
        }
        for ix in self.ir.clone().indices() {
            let is_compensation = matches!(self.ir.node(ix).role, Role::Compensation { .. });
            let state = self.node(ix).state;
            match state {
                NodeState::Pending if is_compensation => {}
                NodeState::Pending | NodeState::Ready => self.cancel_node(ix, at, effects),
                // The node's children are cancelled first; the node follows when the last child has ended.
                NodeState::Waiting if !self.stop_children(ix, effects) => {
                    self.close_approval_of(ix, effects);
                    self.cancel_node(ix, at, effects);
                }
                _ => {}
            }
        }
        true
    }

    fn cancel_node(&mut self, ix: NodeIx, at: Timestamp, effects: &mut Vec<Effect>) {
        self.shift(ix, Transition::Cancel, effects);
        let node = self.node_mut(ix);
        node.wait = None;
        node.completed_at = Some(at);
    }

    pub(super) fn on_compensating(&mut self, effects: &mut Vec<Effect>) -> bool {
        let closing = self.phase == Phase::Closing;
        self.phase = Phase::Compensating;
        self.release_next_compensation(effects);
        closing
    }

    pub(super) fn release_next_compensation(&mut self, effects: &mut Vec<Effect>) {
        if let Some(next) = self.next_compensation() {
            self.shift(next, Transition::Release, effects);
        }
    }

    /// The compensation of the node that succeeded last and was not undone yet.
    fn next_compensation(&self) -> Option<NodeIx> {
        if !self.closing.as_ref().is_some_and(|closing| closing.compensate) {
            return None;
        }
        self.ir
            .steps()
            .filter(|(ix, _)| self.node(*ix).state == NodeState::Succeeded)
            .filter_map(|(ix, node)| Some((self.node(ix).ended_seq, ix, node.compensation?)))
            .filter(|(_, _, compensation)| self.node(*compensation).state == NodeState::Pending)
            .max_by_key(|(ended, ix, _)| (*ended, *ix))
            .map(|(_, _, compensation)| compensation)
    }
}
