//! One run: its state, its history, and every rule of how it moves.
//!
//! A command is decided in its own file (`claim`, `settle`, `close`, …): it checks, then emits events. An event changes
//! the state in [`Run::apply`](apply) and nowhere else, so that folding the history gives the state (I6). A command
//! returns its effects outside the run as [`Effect`]s.
//!
//! The table of node transitions is [`NodeState::after`].

mod apply;
mod approve;
mod children;
mod claim;
mod close;
mod control;
mod event;
mod join;
mod limit;
mod logs;
mod node;
mod patch;
mod progress;
mod refusal;
mod release;
mod reopen;
mod settle;
mod signal;
mod stop;
mod timer;

use std::collections::{BTreeMap, VecDeque};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::ids::InvalidId;
use crate::ir::{Ir, NodeIx};
use crate::{ApprovalId, Hash, Labels, OperationId, Payload, RunId, Timestamp};

pub use apply::Damaged;
pub use children::{
    AwaitedChild, CHILDREN_AT_ONCE, Child, ChildEnd, Children, Gathered, PartialList, Wanted,
};
pub use claim::{Reading, Task, TimeLimit};
pub use event::*;
pub use logs::{LOG_BYTES_MAX, LOG_LINES_MAX, LogBatch, LogLevel, LogLine, Logged};
pub use node::{NodeRun, NodeState, Transition, Waiting};
pub use progress::{CHUNKS_MAX, NodeProgress, Progress};
pub use refusal::Refusal;
pub use settle::{ClaimRef, Outcome as TaskOutcome, Settled, Settlement};

/// Signals that may wait in a run for a node to ask for them.
pub const SIGNALS_WAITING_MAX: usize = 1_000;

/// The status of a run, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run waits for its start time or its concurrency key.
    Queued,
    Running,
    Paused,
    /// The run failed or was cancelled, and its running tasks are drained.
    Closing,
    /// Nodes that had succeeded are being compensated.
    Compensating,
    Succeeded,
    Failed,
    Cancelled,
}

impl RunStatus {
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Paused,
        Self::Closing,
        Self::Compensating,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Closing => "closing",
            Self::Compensating => "compensating",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RunStatus {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "run status (queued, running, paused, closing, compensating, succeeded, failed, cancelled)";
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| InvalidId { text: text.to_owned(), expected })
    }
}

impl From<EndStatus> for RunStatus {
    fn from(end: EndStatus) -> Self {
        match end {
            EndStatus::Succeeded => Self::Succeeded,
            EndStatus::Failed => Self::Failed,
            EndStatus::Cancelled => Self::Cancelled,
        }
    }
}

/// The stage of a run. Pausing is a separate flag, because a paused run keeps its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Queued,
    Running,
    Closing,
    Compensating,
    Ended(EndStatus),
}

/// Why and how a run is being closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closing {
    pub outcome: Outcome,
    pub error: RunError,
    /// Tasks that are running are asked to stop, rather than left to finish.
    pub stop_running: bool,
    pub compensate: bool,
    /// When tasks that have not stopped by themselves are ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_by: Option<Timestamp>,
}

/// The state of one run.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: RunId,
    pub ir: Arc<Ir>,
    /// The version of the graph: 1 as accepted, one more with every patch.
    pub version: u32,
    pub accepted: Arc<Accepted>,
    pub accepted_at: Timestamp,
    pub phase: Phase,
    /// Set while the run's start time lies ahead: the run does not wait for its concurrency key yet.
    pub delayed: bool,
    pub paused: bool,
    /// How often the run was started: 1, and one more with every retry.
    pub attempt: u32,
    /// The `seq` of the newest event.
    pub seq: u64,
    /// The state of each node, by [`NodeIx`].
    pub nodes: Vec<NodeRun>,
    /// Tokens in flight: queued, held by workers, or waiting for anything but a person (I3).
    pub counter: u32,
    /// Nodes that wait for a person.
    pub approvals: u32,
    pub closing: Option<Closing>,
    pub deadline: Option<Timestamp>,
    /// Signals that arrived before a node waited for them.
    pub signals: VecDeque<(Arc<str>, Payload)>,
    /// Commands that have taken effect, by id, with the hash of each command. A store that keeps runs elsewhere loads
    /// only those that a command asks about.
    pub operations: Arc<BTreeMap<OperationId, Hash>>,
    pub patches: Vec<Patched>,
    pub output: Payload,
    pub error: Option<RunError>,
    pub ended_at: Option<Timestamp>,
}

/// Equality of state: two folds of one history agree in everything, the IR by its hash. Operations are left out,
/// because not every store loads all of them with the run.
impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.ir.hash == other.ir.hash
            && (self.id, self.version, self.phase, self.paused, self.attempt, self.seq)
                == (other.id, other.version, other.phase, other.paused, other.attempt, other.seq)
            && (self.counter, self.approvals, self.deadline, self.ended_at, self.accepted_at)
                == (other.counter, other.approvals, other.deadline, other.ended_at, other.accepted_at)
            && self.delayed == other.delayed
            && self.nodes == other.nodes
            && self.closing == other.closing
            && self.signals == other.signals
            && self.patches == other.patches
            && self.output == other.output
            && self.error == other.error
            && self.accepted == other.accepted
    }
}

/// A request of a run to its store.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The store has to queue a token of this node.
    Ready(NodeIx),
    /// A token of this node is no longer queued or held.
    Left(NodeIx),
    /// Call [`Run::fire`] at this moment; too early or too often does no harm.
    Timer {
        at: Timestamp,
        node: NodeIx,
        claim: u32,
    },
    Deadline {
        at: Timestamp,
    },
    /// Call [`Run::come_due`] at this moment; too early or too often does no harm.
    StartAt {
        at: Timestamp,
    },
    /// The store has to put the run in line for its concurrency key.
    LineUp,
    /// Call [`Run::stop_overdue`] at this moment; too early or too often does no harm.
    StopBy {
        at: Timestamp,
    },
    ApprovalOpened {
        approval: ApprovalId,
    },
    ApprovalClosed {
        approval: ApprovalId,
    },
    StartChild {
        child: RunId,
        workflow: Arc<str>,
        definition: Hash,
        input: Payload,
        labels: Labels,
        parent: ParentLink,
    },
    /// `stop_by` is the parent's, if the parent is being closed as well.
    CancelChild {
        child: RunId,
        compensate: bool,
        stop_by: Option<Timestamp>,
    },
    /// The run itself ended claims; their holders did not.
    ClaimsEnded,
    /// A store that keeps the children of this node elsewhere has to load more of them: the decision is void.
    NotLoaded {
        node: NodeIx,
        wanted: Wanted,
    },
    /// Tokens and timers handed out before are void; [`Run::standing_effects`] has the valid ones.
    Rewired,
    Ended,
}

/// The events and effects of a command.
#[derive(Debug, Default)]
pub struct Changes {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    /// The operation that is being carried out, until the command's first event has taken it.
    operation: Option<Operation>,
}

impl Changes {
    /// Empty changes for a command with an operation id.
    pub(crate) fn of(operation: Operation) -> Self {
        Self { operation: Some(operation), ..Self::default() }
    }
}

impl Run {
    pub fn status(&self) -> RunStatus {
        match self.phase {
            Phase::Queued | Phase::Running if self.paused => RunStatus::Paused,
            Phase::Queued => RunStatus::Queued,
            Phase::Running => RunStatus::Running,
            Phase::Closing => RunStatus::Closing,
            Phase::Compensating => RunStatus::Compensating,
            Phase::Ended(end) => end.into(),
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    pub fn node(&self, ix: NodeIx) -> &NodeRun {
        &self.nodes[ix.index()]
    }

    pub(crate) fn node_mut(&mut self, ix: NodeIx) -> &mut NodeRun {
        &mut self.nodes[ix.index()]
    }

    /// How many nodes may be active at once: the run's own cap, or its workflow's.
    pub fn parallelism(&self) -> Option<u32> {
        self.accepted.parallelism.or(self.ir.parallelism)
    }

    /// The priority of a node: its own, or else the run's.
    pub fn priority(&self, ix: NodeIx) -> u8 {
        self.ir.node(ix).priority_in(self.accepted.priority)
    }

    /// The run's start time, while the run waits for it.
    pub fn starts_at(&self) -> Option<Timestamp> {
        self.accepted.start_at.filter(|_| self.delayed && self.phase == Phase::Queued)
    }

    /// Whether the run's queued tokens may be handed out.
    pub fn hands_out(&self) -> bool {
        !self.paused && !matches!(self.phase, Phase::Queued | Phase::Ended(_))
    }

    /// When the remaining tasks of a closing run are cancelled, if the run has such a limit.
    pub(super) fn stop_by(&self) -> Option<Timestamp> {
        let closing = self.closing.as_ref().filter(|_| self.phase == Phase::Closing);
        closing.and_then(|closing| closing.stop_by)
    }

    /// How many runs are above this one.
    pub fn depth(&self) -> u32 {
        self.accepted.parent.as_ref().map_or(0, |parent| parent.depth)
    }

    /// Whether an operation has taken effect already. Another command with the same id is refused.
    pub fn has_applied(&self, operation: &Operation) -> Result<bool, Refusal> {
        match self.operations.get(&operation.id) {
            None => Ok(false),
            Some(command) if *command == operation.command => Ok(true),
            Some(_) => Err(Refusal::OperationReused(operation.id.clone())),
        }
    }

    fn id_of(&self, ix: NodeIx) -> Arc<str> {
        self.ir.node(ix).id.clone()
    }

    /// Records an event, and applies it.
    fn emit(&mut self, kind: EventKind, at: Timestamp, out: &mut Changes) {
        self.emit_with_ir(kind, None, at, out);
    }

    fn emit_with_ir(&mut self, kind: EventKind, ir: Option<&Arc<Ir>>, at: Timestamp, out: &mut Changes) {
        let mut kind = kind;
        if let Some(operation) = out.operation.take() {
            let carried = kind.carry(operation);
            debug_assert!(carried, "a command began with an event that carries no operation: {kind:?}");
        }
        let event = Event { run: self.id, seq: self.seq + 1, at, kind };
        let applied = self.apply(&event, ir, &mut out.effects);
        debug_assert!(
            applied.is_ok(),
            "a command emitted an event that does not apply: {applied:?} {event:?}"
        );
        out.events.push(event);
    }

    /// The effects that the current state requires outside the run: after a restart, a patch, a pause.
    pub fn standing_effects(&self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.is_ended() {
            return effects;
        }
        effects.extend(self.deadline.map(|at| Effect::Deadline { at }));
        effects.extend(self.starts_at().map(|at| Effect::StartAt { at }));
        effects.extend(self.stop_by().map(|at| Effect::StopBy { at }));
        for ix in self.ir.indices() {
            let node = self.node(ix);
            match node.state {
                NodeState::Ready if self.hands_out() => effects.push(Effect::Ready(ix)),
                NodeState::Waiting => {
                    self.effects_of_waiting(ix, &mut effects);
                    effects.extend(self.next_batch(ix));
                }
                _ => {}
            }
        }
        effects
    }

    fn effects_of_waiting(&self, ix: NodeIx, effects: &mut Vec<Effect>) {
        let node = self.node(ix);
        let at = match node.wait.as_deref() {
            Some(Waiting::Retry { until } | Waiting::For(WaitFor::Timer { until })) => Some(*until),
            Some(Waiting::For(WaitFor::Signal { timeout_at, .. })) => *timeout_at,
            Some(Waiting::For(WaitFor::Approval(request))) => {
                effects.push(Effect::ApprovalOpened { approval: request.approval.clone() });
                request.timeout_at
            }
            Some(Waiting::Children(children)) => children.timeout_at,
            Some(Waiting::For(WaitFor::Children(_)) | Waiting::Gathered(_)) | None => None,
        };
        effects.extend(at.map(|at| Effect::Timer { at, node: ix, claim: node.claim }));
    }
}
