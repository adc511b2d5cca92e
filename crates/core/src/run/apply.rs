//! Applies events to the state of a run. Commands change the state only by events.

use std::sync::Arc;

use super::*;
use crate::NodeError;
use crate::ir::{NodeIx, Role};

/// A history that does not fit together. Never repaired silently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damaged {
    #[error("event {found} of {run} follows event {last}")]
    Gap { run: RunId, last: u64, found: u64 },
    #[error("{run} does not begin with its acceptance")]
    NoBeginning { run: RunId },
    #[error("event {seq} of {run} names node `{node}`, which its graph does not have")]
    UnknownNode { run: RunId, seq: u64, node: Arc<str> },
    #[error("event {seq} of {run} ({kind}) does not fit the state it comes to")]
    DoesNotFit { run: RunId, seq: u64, kind: &'static str },
    #[error("event {seq} of {run} needs definition {definition}, which is missing")]
    NoDefinition { run: RunId, seq: u64, definition: Hash },
}

impl Run {
    /// Folds a history into the state it leads to. `resolve` finds the graphs that it mentions.
    pub fn replay(events: &[Event], resolve: &dyn Fn(Hash) -> Option<Arc<Ir>>) -> Result<Self, Damaged> {
        let (first, rest) = match events.split_first() {
            Some((first, rest)) if first.seq == 1 => (first, rest),
            Some((first, _)) => return Err(Damaged::NoBeginning { run: first.run }),
            None => return Err(Damaged::NoBeginning { run: RunId::new(Timestamp::default(), 0, 0) }),
        };
        let EventKind::RunAccepted(accepted) = &first.kind else {
            return Err(Damaged::NoBeginning { run: first.run });
        };
        let find = |event: &Event, definition: Hash| {
            resolve(definition).ok_or(Damaged::NoDefinition { run: event.run, seq: event.seq, definition })
        };
        let ir = find(first, accepted.definition)?;
        let mut ignored = Vec::new();
        let mut run = Self::from_accepted(first, accepted, ir, &mut ignored);
        for event in rest {
            let ir = match &event.kind {
                EventKind::RunPatched(patched) => Some(find(event, patched.definition)?),
                _ => None,
            };
            run.apply(event, ir.as_ref(), &mut ignored)?;
            ignored.clear();
        }
        Ok(run)
    }

    /// The state right after acceptance.
    pub(super) fn from_accepted(
        event: &Event,
        accepted: &Accepted,
        ir: Arc<Ir>,
        effects: &mut Vec<Effect>,
    ) -> Self {
        let nodes = vec![NodeRun::default(); ir.nodes.len()];
        let mut run = Self {
            id: event.run,
            ir,
            version: 1,
            accepted: Arc::new(accepted.clone()),
            accepted_at: event.at,
            phase: if accepted.queued { Phase::Queued } else { Phase::Running },
            delayed: accepted.start_at.is_some(),
            paused: false,
            attempt: 1,
            seq: event.seq,
            nodes,
            counter: 0,
            approvals: 0,
            closing: None,
            deadline: accepted.deadline,
            signals: VecDeque::new(),
            operations: Arc::default(),
            patches: Vec::new(),
            output: Payload::null(),
            error: None,
            ended_at: None,
        };
        run.plant_seeds(event);
        if !accepted.queued {
            run.recount_joins(effects);
        }
        effects.extend(run.deadline.map(|at| Effect::Deadline { at }));
        effects.extend(run.starts_at().map(|at| Effect::StartAt { at }));
        run
    }

    fn plant_seeds(&mut self, event: &Event) {
        let accepted = self.accepted.clone();
        for seed in &accepted.seeds {
            let Some(ix) = self.ir.find(&seed.node) else { continue };
            let node = self.node_mut(ix);
            (node.state, node.output, node.error) = match &seed.end {
                SeedEnd::Succeeded(output) => (NodeState::Succeeded, Some(output.clone()), None),
                SeedEnd::Failed(error) => (NodeState::Failed, None, Some(Arc::new(error.clone()))),
                SeedEnd::Skipped => (NodeState::Skipped, None, None),
            };
            node.attempt = 1;
            node.completed_at = Some(event.at);
            node.ended_seq = event.seq;
        }
    }

    /// Applies one event. `ir` is the new graph for [`EventKind::RunPatched`], and unused otherwise.
    pub fn apply(
        &mut self,
        event: &Event,
        ir: Option<&Arc<Ir>>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Damaged> {
        if event.seq != self.seq + 1 {
            return Err(Damaged::Gap { run: self.id, last: self.seq, found: event.seq });
        }
        let fits = match &event.kind {
            EventKind::RunAccepted(_) => false,
            EventKind::RunQueued {} => self.on_queued(effects),
            EventKind::RunStarted {} => self.on_started(effects),
            EventKind::RunPaused { .. } => self.on_pause_changed(true, effects),
            EventKind::RunResumed { .. } => self.on_pause_changed(false, effects),
            EventKind::RunClosing { outcome, error, stop_running, compensate, stop_by, .. } => {
                let closing = Closing {
                    outcome: *outcome,
                    error: error.clone(),
                    stop_running: *stop_running,
                    compensate: *compensate,
                    stop_by: *stop_by,
                };
                self.on_closing(closing, event.at, effects)
            }
            EventKind::RunCompensating {} => self.on_compensating(effects),
            EventKind::RunEnded { status, output, error } => {
                self.phase = Phase::Ended(*status);
                (self.output, self.error, self.ended_at) = (output.clone(), error.clone(), Some(event.at));
                effects.push(Effect::Ended);
                true
            }
            EventKind::RunRetried { reset, .. } => self.on_retried(reset, effects),
            EventKind::RunPatched(patched) => match ir {
                Some(ir) => self.on_patched(patched, ir, effects),
                None => false,
            },
            EventKind::SignalReceived { name, payload, .. } => {
                self.signals.push_back((name.clone(), payload.clone()));
                true
            }
            _ => self.apply_to_node(event, effects)?,
        };
        if !fits {
            return Err(Damaged::DoesNotFit { run: self.id, seq: event.seq, kind: event.kind.name() });
        }
        if let Some(operation) = event.kind.operation() {
            Arc::make_mut(&mut self.operations).insert(operation.id.clone(), operation.command);
        }
        self.seq = event.seq;
        Ok(())
    }

    fn apply_to_node(&mut self, event: &Event, effects: &mut Vec<Effect>) -> Result<bool, Damaged> {
        let Some(id) = event.kind.node() else { return Ok(false) };
        let Some(ix) = self.ir.find(id) else {
            return Err(Damaged::UnknownNode { run: self.id, seq: event.seq, node: id.clone() });
        };
        Ok(match &event.kind {
            EventKind::NodeStarted { attempt, claim, .. } => {
                self.on_node_started(ix, *attempt, *claim, event.at, effects)
            }
            EventKind::NodeSucceeded { output, .. } => {
                self.take_awaited_signal(ix);
                let node = self.node_mut(ix);
                (node.output, node.error) = (Some(output.clone()), None);
                self.end_node(ix, Transition::Succeed, event, effects)
            }
            EventKind::NodeFailed { error, .. } => {
                self.node_mut(ix).error = Some(Arc::new(error.clone()));
                self.end_node(ix, Transition::Fail, event, effects)
            }
            EventKind::NodeSkipped { .. } => self.end_node(ix, Transition::Skip, event, effects),
            EventKind::NodeCancelled { .. } => self.end_node(ix, Transition::Cancel, event, effects),
            EventKind::NodeRetrying { error, at, .. } => self.on_node_retrying(ix, error, *at, effects),
            EventKind::NodeWaiting { on, .. } => self.on_node_waiting(ix, on, effects),
            EventKind::NodeWoken { .. } => self.on_node_woken(ix, effects),
            EventKind::NodeReleased { reason, .. } => self.on_node_released(ix, *reason, effects),
            EventKind::NodeCheckpointed { value, .. } => self.on_node_checkpointed(ix, value),
            EventKind::NodeChunks { chunks, .. } => self.on_node_chunks(ix, chunks),
            EventKind::NodeLogged { count, bytes, truncated, .. } => {
                self.on_node_logged(ix, *count, *bytes, *truncated)
            }
            EventKind::ApprovalDecided { approval, .. } => {
                effects.push(Effect::ApprovalClosed { approval: approval.clone() });
                self.node(ix).waits_for_approval()
            }
            EventKind::ChildStarted { index, run, .. } => self.on_child_started(ix, *index, *run, effects),
            EventKind::ChildEnded { index, run, status, output, error, .. } => {
                let end =
                    ChildEnd { run: *run, status: *status, output: output.clone(), error: error.clone() };
                self.on_child_ended(ix, *index, end, effects)
            }
            _ => false,
        })
    }

    fn on_queued(&mut self, effects: &mut Vec<Effect>) -> bool {
        effects.push(Effect::LineUp);
        std::mem::replace(&mut self.delayed, false) && self.phase == Phase::Queued
    }

    fn on_started(&mut self, effects: &mut Vec<Effect>) -> bool {
        let queued = self.phase == Phase::Queued;
        (self.phase, self.delayed) = (Phase::Running, false);
        self.recount_joins(effects);
        queued
    }

    fn on_pause_changed(&mut self, paused: bool, effects: &mut Vec<Effect>) -> bool {
        effects.push(Effect::Rewired);
        std::mem::replace(&mut self.paused, paused) != paused
    }

    fn on_node_started(
        &mut self,
        ix: NodeIx,
        attempt: u32,
        claim: u32,
        at: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let node = self.node_mut(ix);
        (node.attempt, node.claim) = (attempt, claim);
        node.deliveries += 1;
        node.continues = false;
        node.started_at.get_or_insert(at);
        self.shift(ix, Transition::Start, effects)
    }

    /// Ends a node: stamps it, and decides its edges or releases the next compensation.
    fn end_node(&mut self, ix: NodeIx, on: Transition, event: &Event, effects: &mut Vec<Effect>) -> bool {
        self.close_approval_of(ix, effects);
        self.stop_children(ix, effects);
        if !self.shift(ix, on, effects) {
            return false;
        }
        let node = self.node_mut(ix);
        node.completed_at = Some(event.at);
        node.ended_seq = event.seq;
        (node.wait, node.said) = (None, None);
        match self.ir.node(ix).role {
            Role::Step if self.phase == Phase::Running => self.resolve_edges(ix, effects),
            Role::Compensation { .. } => self.release_next_compensation(effects),
            Role::Step | Role::Output => {}
        }
        true
    }

    fn on_node_retrying(
        &mut self,
        ix: NodeIx,
        error: &NodeError,
        until: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let node = self.node_mut(ix);
        node.error = Some(Arc::new(error.clone()));
        node.wait = Some(Box::new(Waiting::Retry { until }));
        // A retried loop begins with its first round.
        (node.deliveries, node.rounds) = (0, 0);
        if let Some(said) = &mut node.said {
            (said.chunks, said.logged) = (0, Logged::default());
        }
        let shifted = self.shift(ix, Transition::Retry, effects);
        self.effects_of_waiting(ix, effects);
        shifted
    }

    fn on_node_waiting(&mut self, ix: NodeIx, on: &WaitFor, effects: &mut Vec<Effect>) -> bool {
        let node = self.node_mut(ix);
        node.deliveries = 0;
        node.wait = Some(Box::new(match on {
            WaitFor::Children(plan) => {
                node.rounds += 1;
                Waiting::Children(Children::new(plan))
            }
            other => Waiting::For(other.clone()),
        }));
        let shifted = self.shift(ix, Transition::Wait, effects);
        self.effects_of_waiting(ix, effects);
        shifted
    }

    fn on_node_woken(&mut self, ix: NodeIx, effects: &mut Vec<Effect>) -> bool {
        let node = self.node_mut(ix);
        node.wait = match node.wait.take().map(|wait| *wait) {
            Some(Waiting::Children(children)) => {
                node.continues = true;
                Some(Box::new(Waiting::Gathered(Gathered { count: children.count, ends: children.ends })))
            }
            _ => None,
        };
        self.shift(ix, Transition::Wake, effects)
    }

    fn on_node_released(&mut self, ix: NodeIx, reason: ReleaseReason, effects: &mut Vec<Effect>) -> bool {
        let node = self.node_mut(ix);
        node.continues = true;
        if reason == ReleaseReason::HandedBack {
            node.deliveries = node.deliveries.saturating_sub(1);
        }
        self.shift(ix, Transition::HandBack, effects)
    }

    pub(super) fn close_approval_of(&self, ix: NodeIx, effects: &mut Vec<Effect>) {
        if let Some(Waiting::For(WaitFor::Approval(request))) = self.node(ix).wait.as_deref() {
            effects.push(Effect::ApprovalClosed { approval: request.approval.clone() });
        }
    }
}
