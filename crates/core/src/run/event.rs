//! The history of a run. Only applying an event changes the state, so the history rebuilds the state (I6).
//!
//! Nodes are named by id, not by index: a history must stay readable, and valid after a patch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{NodeError, RunError};
use crate::{ApprovalId, Hash, Labels, OperationId, PatchId, Payload, RunId, Timestamp, TraceLink};

/// One entry in a run's history. `seq` counts from 1 without gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub run: RunId,
    pub seq: u64,
    pub at: Timestamp,
    pub kind: EventKind,
}

/// The kind of an event, with its data. Serialised with the name outside (`{"node_started": {…}}`): serde would have to
/// buffer an inner tag, and payloads are carried as raw JSON text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    RunAccepted(Box<Accepted>),
    /// A delayed run has reached its start time, and now waits for its concurrency key.
    RunQueued {},
    /// A run that waited for its start time or its concurrency key has started.
    RunStarted {},
    RunPaused {
        by: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Operation>,
    },
    RunResumed {
        by: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Operation>,
    },
    /// No further node starts; running tasks are drained, then succeeded nodes are compensated, then the run ends.
    RunClosing {
        outcome: Outcome,
        error: RunError,
        stop_running: bool,
        compensate: bool,
        /// When tasks that have not stopped by themselves are ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_by: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Operation>,
    },
    RunCompensating {},
    RunEnded {
        status: EndStatus,
        output: Payload,
        error: Option<RunError>,
    },
    /// A run that had failed or was cancelled starts over from these nodes.
    RunRetried {
        by: Arc<str>,
        reset: Vec<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Operation>,
    },
    RunPatched(Box<Patched>),
    SignalReceived {
        name: Arc<str>,
        payload: Payload,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Operation>,
    },

    NodeStarted {
        node: Arc<str>,
        attempt: u32,
        claim: u32,
        worker: Arc<str>,
    },
    NodeSucceeded {
        node: Arc<str>,
        output: Payload,
        /// The output is that of an earlier execution: the node was not executed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
    },
    NodeFailed {
        node: Arc<str>,
        attempt: u32,
        error: NodeError,
    },
    NodeRetrying {
        node: Arc<str>,
        attempt: u32,
        error: NodeError,
        at: Timestamp,
    },
    NodeSkipped {
        node: Arc<str>,
        reason: SkipReason,
    },
    NodeWaiting {
        node: Arc<str>,
        on: WaitFor,
    },
    /// The node's wait is over, and a worker has to continue the node.
    NodeWoken {
        node: Arc<str>,
    },
    /// The claim was given back or lost; the same attempt is made again.
    NodeReleased {
        node: Arc<str>,
        reason: ReleaseReason,
    },
    NodeCancelled {
        node: Arc<str>,
    },
    /// The node's worker has saved a checkpoint.
    NodeCheckpointed {
        node: Arc<str>,
        value: Payload,
    },
    /// Streamed output. A reader discards the chunks of an attempt when the node starts again.
    NodeChunks {
        node: Arc<str>,
        attempt: u32,
        chunks: Vec<Payload>,
    },
    /// Lines that an attempt logged: a list of [`LogLine`](super::LogLine).
    NodeLogged {
        node: Arc<str>,
        attempt: u32,
        lines: Payload,
        count: u32,
        /// The size of the messages.
        bytes: u32,
        /// The attempt logged more than is kept: these lines and all that follow were dropped.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    ApprovalDecided {
        node: Arc<str>,
        approval: ApprovalId,
        decision: Decision,
        by: Arc<str>,
        comment: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Operation>,
    },
    ChildStarted {
        node: Arc<str>,
        index: u32,
        run: RunId,
    },
    ChildEnded {
        node: Arc<str>,
        index: u32,
        /// The child. Events of earlier versions do not name it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        status: EndStatus,
        output: Payload,
        error: Option<RunError>,
    },
}

/// The data that a run is accepted with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub workflow: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_version: Option<u32>,
    pub definition: Hash,
    pub input: Payload,
    /// Whether the run waits for its start time or its concurrency key instead of starting at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// No node starts before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// The priority of nodes that have none of their own, 1 (last) to 10 (first).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// The run's trace, if the run was submitted as part of one or traces are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<TraceLink>>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The schedule that started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Arc<str>>,
    /// Results taken over from the run this one was forked from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<Seed>,
}

impl Accepted {
    fn for_each_payload(&self, visit: &mut dyn FnMut(&Payload)) {
        visit(&self.input);
        for seed in &self.seeds {
            if let SeedEnd::Succeeded(output) = &seed.end {
                visit(output);
            }
        }
    }
}

/// An idempotency key: the same key with the same body gives the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    pub key: Arc<str>,
    /// The hash of workflow and input, to tell a repetition from a misuse.
    pub body: Hash,
}

/// At most `limit` runs with this key are under way; the others wait in line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concurrency {
    pub key: Arc<str>,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    pub run: RunId,
    pub node: Arc<str>,
    pub index: u32,
    /// How many runs are above this one.
    pub depth: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOrigin {
    pub run: RunId,
    pub node: Arc<str>,
}

/// A node that a fork does not repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seed {
    pub node: Arc<str>,
    pub end: SeedEnd,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedEnd {
    Succeeded(Payload),
    Failed(NodeError),
    Skipped,
}

/// A change to the graph, with its author and reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Patched {
    pub patch: PatchId,
    /// The version of the graph this patch made; submission is version 1.
    pub version: u32,
    pub definition: Hash,
    pub author: Arc<str>,
    pub reason: Arc<str>,
    /// The operations as they were sent.
    pub ops: Payload,
    /// The changes, one line each, for people.
    pub diff: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<PatchId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
}

/// The command that made an event, as its caller named it. Only the first event of a command carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub id: OperationId,
    /// The hash of the command, to tell a repetition from another command with the same id.
    pub command: Hash,
}

/// How a closing run is going to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Failed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    Succeeded,
    Failed,
    Cancelled,
}

impl From<Outcome> for EndStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Failed => Self::Failed,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The node's `when` was false.
    Condition,
    /// None of the edges that lead here fired.
    NoNeedFired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The worker gave the claim back.
    HandedBack,
    /// The worker went silent.
    LeaseExpired,
    /// The process that held the claims restarted.
    Restart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approved,
    Rejected,
}

/// The condition that a node waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// A moment; then the node succeeds with `null`.
    Timer {
        until: Timestamp,
    },
    Approval(Box<ApprovalRequest>),
    Signal {
        name: Arc<str>,
        timeout_at: Option<Timestamp>,
        on_timeout: SignalTimeout,
    },
    Children(Box<ChildrenPlan>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    pub approval: ApprovalId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// The value that the person sees.
    pub payload: Payload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Timestamp>,
    pub on_timeout: ApprovalTimeout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalTimeout {
    Approve,
    Reject,
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalTimeout {
    Fail,
    /// The node succeeds with `null`.
    Continue,
}

/// Runs that a `map`, `loop` or `workflow` node starts, in order, at most `concurrency` at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildrenPlan {
    pub workflow: Arc<str>,
    pub definition: Hash,
    pub children: Vec<ChildSpec>,
    pub concurrency: u32,
    /// After the first child that does not succeed, no other starts and the rest are cancelled.
    pub stop_on_failure: bool,
    /// At this time the node fails, and its children are cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildSpec {
    pub run: RunId,
    pub input: Payload,
    /// The labels of the child's own definition; inherited labels are added when it starts.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

impl ChildSpec {
    /// A child without labels.
    pub fn plain(run: RunId, input: Payload) -> Self {
        Self { run, input, labels: Labels::new() }
    }
}

impl EventKind {
    /// The event's name, as it stands in stores and streams.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunAccepted(_) => "run_accepted",
            Self::RunQueued {} => "run_queued",
            Self::RunStarted {} => "run_started",
            Self::RunPaused { .. } => "run_paused",
            Self::RunResumed { .. } => "run_resumed",
            Self::RunClosing { .. } => "run_closing",
            Self::RunCompensating {} => "run_compensating",
            Self::RunEnded { .. } => "run_ended",
            Self::RunRetried { .. } => "run_retried",
            Self::RunPatched(_) => "run_patched",
            Self::SignalReceived { .. } => "signal_received",
            Self::NodeStarted { .. } => "node_started",
            Self::NodeSucceeded { .. } => "node_succeeded",
            Self::NodeFailed { .. } => "node_failed",
            Self::NodeRetrying { .. } => "node_retrying",
            Self::NodeSkipped { .. } => "node_skipped",
            Self::NodeWaiting { .. } => "node_waiting",
            Self::NodeWoken { .. } => "node_woken",
            Self::NodeReleased { .. } => "node_released",
            Self::NodeCancelled { .. } => "node_cancelled",
            Self::NodeCheckpointed { .. } => "node_checkpointed",
            Self::NodeChunks { .. } => "node_chunks",
            Self::NodeLogged { .. } => "node_logged",
            Self::ApprovalDecided { .. } => "approval_decided",
            Self::ChildStarted { .. } => "child_started",
            Self::ChildEnded { .. } => "child_ended",
        }
    }

    /// The operation that made the event.
    pub fn operation(&self) -> Option<&Operation> {
        match self {
            Self::RunPaused { operation, .. }
            | Self::RunResumed { operation, .. }
            | Self::RunClosing { operation, .. }
            | Self::RunRetried { operation, .. }
            | Self::SignalReceived { operation, .. }
            | Self::ApprovalDecided { operation, .. } => operation.as_ref(),
            Self::RunPatched(patched) => patched.operation.as_ref(),
            _ => None,
        }
    }

    /// Records the operation that made the event. Returns false if no command begins with such an event.
    pub(super) fn carry(&mut self, made_by: Operation) -> bool {
        let carried = match self {
            Self::RunPaused { operation, .. }
            | Self::RunResumed { operation, .. }
            | Self::RunClosing { operation, .. }
            | Self::RunRetried { operation, .. }
            | Self::SignalReceived { operation, .. }
            | Self::ApprovalDecided { operation, .. } => operation,
            Self::RunPatched(patched) => &mut patched.operation,
            _ => return false,
        };
        *carried = Some(made_by);
        true
    }

    /// Visits every payload of the event; each may be a reference into the CAS.
    pub fn for_each_payload(&self, visit: &mut dyn FnMut(&Payload)) {
        match self {
            Self::RunAccepted(accepted) => accepted.for_each_payload(visit),
            Self::RunEnded { output: payload, .. }
            | Self::SignalReceived { payload, .. }
            | Self::NodeSucceeded { output: payload, .. }
            | Self::NodeCheckpointed { value: payload, .. }
            | Self::NodeLogged { lines: payload, .. }
            | Self::ChildEnded { output: payload, .. } => visit(payload),
            Self::NodeChunks { chunks, .. } => chunks.iter().for_each(visit),
            Self::RunPatched(patched) => visit(&patched.ops),
            Self::NodeWaiting { on, .. } => match on {
                WaitFor::Approval(request) => visit(&request.payload),
                WaitFor::Children(plan) => plan.children.iter().for_each(|child| visit(&child.input)),
                WaitFor::Timer { .. } | WaitFor::Signal { .. } => {}
            },
            Self::RunQueued {}
            | Self::RunStarted {}
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::RunClosing { .. }
            | Self::RunCompensating {}
            | Self::RunRetried { .. }
            | Self::NodeStarted { .. }
            | Self::NodeFailed { .. }
            | Self::NodeRetrying { .. }
            | Self::NodeSkipped { .. }
            | Self::NodeWoken { .. }
            | Self::NodeReleased { .. }
            | Self::NodeCancelled { .. }
            | Self::ApprovalDecided { .. }
            | Self::ChildStarted { .. } => {}
        }
    }

    /// The node that the event concerns, if any.
    pub fn node(&self) -> Option<&Arc<str>> {
        match self {
            Self::NodeStarted { node, .. }
            | Self::NodeSucceeded { node, .. }
            | Self::NodeFailed { node, .. }
            | Self::NodeRetrying { node, .. }
            | Self::NodeSkipped { node, .. }
            | Self::NodeWaiting { node, .. }
            | Self::NodeWoken { node }
            | Self::NodeReleased { node, .. }
            | Self::NodeCancelled { node }
            | Self::NodeCheckpointed { node, .. }
            | Self::NodeChunks { node, .. }
            | Self::NodeLogged { node, .. }
            | Self::ApprovalDecided { node, .. }
            | Self::ChildStarted { node, .. }
            | Self::ChildEnded { node, .. } => Some(node),
            Self::RunAccepted(_)
            | Self::RunQueued {}
            | Self::RunStarted {}
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::RunClosing { .. }
            | Self::RunCompensating {}
            | Self::RunEnded { .. }
            | Self::RunRetried { .. }
            | Self::RunPatched(_)
            | Self::SignalReceived { .. } => None,
        }
    }
}
