//! Handing a node to a worker.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::TraceLink;

/// A claimed token with everything a worker needs to execute it.
#[derive(Clone, Debug)]
pub struct Task {
    pub run: RunId,
    pub node: Arc<str>,
    pub ix: NodeIx,
    pub claim: u32,
    pub attempt: u32,
    /// The hash by which workers cache the compiled workflow.
    pub definition: Hash,
    pub workflow: Arc<str>,
    pub run_attempt: u32,
    /// When a worker first received the task.
    pub started_at: Timestamp,
    /// The queue that the task was in; `queued_at` is the time when it was queued.
    pub queue: Arc<str>,
    pub queued_at: Timestamp,
    /// The trace that the run belongs to.
    pub trace: Option<Arc<TraceLink>>,
    pub depth: u32,
    /// None of the node's needs fired: the worker settles the task as skipped and does not execute it.
    pub skip: bool,
    pub input: Payload,
    /// Results of the nodes that the node's expressions mention.
    pub reads: Vec<Reading>,
    /// How often the node has waited for children.
    pub rounds: u32,
    /// Results of the children in the last round; `None` for a child that was never started.
    pub children: Option<Vec<Child>>,
    /// The checkpoint that an earlier attempt saved.
    pub checkpoint: Option<Payload>,
    /// How long this attempt may take; the store that hands the task out enforces it.
    pub limit: Option<TimeLimit>,
}

/// The limit of a claimed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    pub lasts: Duration,
    pub ends: Timestamp,
}

impl TimeLimit {
    /// When the claim with this limit was made.
    pub fn began(self) -> Timestamp {
        self.ends.minus(self.lasts)
    }
}

/// The result of a node, as another node's expressions see it.
#[derive(Clone, Debug)]
pub struct Reading {
    pub node: Arc<str>,
    pub state: NodeState,
    pub output: Payload,
    pub error: Option<Arc<crate::NodeError>>,
}

impl Run {
    /// Hands a ready node to a worker. `None` if it is not ready, or the run hands nothing out.
    pub fn claim(
        &mut self,
        ix: NodeIx,
        worker: &Arc<str>,
        now: Timestamp,
        out: &mut Changes,
    ) -> Option<Task> {
        if !self.hands_out() || self.node(ix).state != NodeState::Ready {
            return None;
        }
        let node = self.node(ix);
        let attempt = if node.continues { node.attempt } else { node.attempt + 1 };
        let started = EventKind::NodeStarted {
            node: self.id_of(ix),
            attempt,
            claim: node.claim + 1,
            worker: worker.clone(),
        };
        self.emit(started, now, out);
        if let Some(Waiting::Gathered(gathered)) = self.node(ix).wait.as_deref()
            && !gathered.ends.is_whole()
        {
            out.effects.push(Effect::NotLoaded { node: ix, wanted: Wanted::Everything });
        }
        Some(self.task(ix, now))
    }

    /// The task of a valid claim, as its holder received it.
    pub fn held_task(&self, ix: NodeIx, claim: u32) -> Option<Task> {
        let held = self.standing(ix, claim) == Settled::Applied;
        held.then(|| self.task(ix, self.node(ix).started_at.unwrap_or(self.accepted_at)))
    }

    fn task(&self, ix: NodeIx, now: Timestamp) -> Task {
        let (node, spec) = (self.node(ix), self.ir.node(ix));
        let children = match node.wait.as_deref() {
            Some(Waiting::Gathered(gathered)) => Some(gathered.children()),
            _ => None,
        };
        Task {
            run: self.id,
            node: spec.id.clone(),
            ix,
            claim: node.claim,
            attempt: node.attempt,
            definition: self.ir.hash,
            workflow: self.ir.name.clone(),
            run_attempt: self.attempt,
            started_at: node.started_at.unwrap_or(self.accepted_at),
            queue: spec.queue.clone(),
            // A placeholder: the store knows when the token was queued.
            queued_at: now,
            trace: self.accepted.trace.clone(),
            depth: self.depth(),
            skip: self.is_to_be_skipped(ix),
            input: self.accepted.input.clone(),
            reads: spec.reads.iter().map(|&read| self.reading(read)).collect(),
            rounds: node.rounds,
            children,
            checkpoint: node.said.as_ref().and_then(|said| said.checkpoint.clone()),
            // The store sets the limit.
            limit: None,
        }
    }

    fn reading(&self, ix: NodeIx) -> Reading {
        let node = self.node(ix);
        Reading {
            node: self.id_of(ix),
            state: node.state,
            output: node.output_or_null(),
            error: node.error.clone(),
        }
    }
}
