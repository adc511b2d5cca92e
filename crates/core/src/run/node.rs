//! The life of a node: its states, and the whole table of how it moves between them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::children::{Children, Gathered};
use super::event::WaitFor;
use super::progress::NodeProgress;
use crate::{NodeError, Payload, Timestamp};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// The node's needs have not all ended.
    #[default]
    Pending,
    /// A token of the node is in a queue.
    Ready,
    /// A worker holds the node's token.
    Running,
    /// The node waits for a moment, a person, a signal, or its children.
    Waiting,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
}

/// The transitions of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The node's join closed.
    Release,
    /// A worker claimed the node's token.
    Start,
    Succeed,
    Fail,
    /// An attempt failed and another will be made later.
    Retry,
    Skip,
    /// The node gave up its token to wait.
    Wait,
    /// The node's wait is over; a worker has to continue the node.
    Wake,
    /// The node's worker gave the token back, or lost it.
    HandBack,
    Cancel,
    /// The run starts over from this node, or a patch takes its token back.
    Reset,
}

impl NodeState {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Ready,
        Self::Running,
        Self::Waiting,
        Self::Succeeded,
        Self::Failed,
        Self::Skipped,
        Self::Cancelled,
    ];

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Skipped | Self::Cancelled)
    }

    /// The transition table: the state after `on`, or `None` where it cannot happen.
    ///
    /// Rows are states, columns are transitions. Every pair is decided here and nowhere else.
    pub fn after(self, on: Transition) -> Option<Self> {
        use NodeState::{
            Cancelled as C, Failed as F, Pending as P, Ready as Q, Running as R, Skipped as K,
            Succeeded as S, Waiting as W,
        };
        const NO: Option<NodeState> = None;
        const fn to(state: NodeState) -> Option<NodeState> {
            Some(state)
        }
        #[rustfmt::skip]
        let table: [[Option<Self>; 11]; 8] = [
            // Release  Start  Succeed  Fail   Retry  Skip   Wait   Wake   HandBack Cancel Reset
            [  to(Q),   NO,    NO,      NO,    NO,    NO,    NO,    NO,    NO,      to(C), NO    ], // Pending
            [  NO,      to(R), NO,      NO,    NO,    NO,    NO,    NO,    NO,      to(C), to(P) ], // Ready
            [  NO,      NO,    to(S),   to(F), to(W), to(K), to(W), NO,    to(Q),   to(C), NO    ], // Running
            [  NO,      NO,    to(S),   to(F), NO,    NO,    NO,    to(Q), NO,      to(C), NO    ], // Waiting
            [  NO,      NO,    NO,      NO,    NO,    NO,    NO,    NO,    NO,      NO,    to(P) ], // Succeeded
            [  NO,      NO,    NO,      NO,    NO,    NO,    NO,    NO,    NO,      NO,    to(P) ], // Failed
            [  NO,      NO,    NO,      NO,    NO,    NO,    NO,    NO,    NO,      NO,    to(P) ], // Skipped
            [  NO,      NO,    NO,      NO,    NO,    NO,    NO,    NO,    NO,      NO,    to(P) ], // Cancelled
        ];
        table[self as usize][on as usize]
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A node within one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRun {
    pub state: NodeState,
    /// Attempts begun, counted from 1. A claim that was given back is made again with the same number.
    pub attempt: u32,
    /// How often a worker received this node; the number of the current claim.
    pub claim: u32,
    /// The next claim continues the current attempt instead of beginning another.
    pub continues: bool,
    /// Claims of the current attempt: the limit on these stops a node that crashes its workers.
    pub deliveries: u32,
    /// Edges into the node that have not been decided.
    pub open_needs: u32,
    /// Edges into the node that fired.
    pub fired: u32,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    /// The `seq` of the event that ended the node: compensations run in the reverse order.
    pub ended_seq: u64,
    pub output: Option<Payload>,
    pub error: Option<Arc<NodeError>>,
    pub wait: Option<Box<Waiting>>,
    /// How often the node has waited for children: the iteration of a loop.
    pub rounds: u32,
    /// The progress that workers reported while they held the node.
    pub said: Option<Box<NodeProgress>>,
}

/// The data of a waiting node.
#[derive(Clone, Debug, PartialEq)]
pub enum Waiting {
    /// The node waits for its next attempt.
    Retry {
        until: Timestamp,
    },
    For(WaitFor),
    Children(Children),
    /// The node's children have all ended; their results are kept until a worker has read them.
    Gathered(Gathered),
}

impl NodeRun {
    pub fn output_or_null(&self) -> Payload {
        self.output.clone().unwrap_or_default()
    }

    /// Whether the node's token counts as in flight: queued, held by a worker, or waiting for anything but a person.
    pub(super) fn counts(&self) -> bool {
        match self.state {
            NodeState::Ready | NodeState::Running => true,
            NodeState::Waiting => !self.waits_for_approval(),
            _ => false,
        }
    }

    pub(super) fn waits_for_approval(&self) -> bool {
        self.state == NodeState::Waiting
            && matches!(self.wait.as_deref(), Some(Waiting::For(WaitFor::Approval(_))))
    }

    /// Whether a worker has received the node since the run's last retry: a patch must not change it then (I8).
    pub fn has_started(&self) -> bool {
        self.attempt > 0
    }

    /// Whether the node ended in a state that decides its edges. A cancelled node leaves its dependents waiting.
    pub(super) fn has_decided_edges(&self) -> bool {
        matches!(self.state, NodeState::Succeeded | NodeState::Failed | NodeState::Skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSITIONS: [Transition; 11] = [
        Transition::Release,
        Transition::Start,
        Transition::Succeed,
        Transition::Fail,
        Transition::Retry,
        Transition::Skip,
        Transition::Wait,
        Transition::Wake,
        Transition::HandBack,
        Transition::Cancel,
        Transition::Reset,
    ];

    #[test]
    fn nothing_but_a_reset_leaves_a_terminal_state() {
        for state in NodeState::ALL.into_iter().filter(|state| state.is_terminal()) {
            for on in TRANSITIONS {
                let expected = (on == Transition::Reset).then_some(NodeState::Pending);
                assert_eq!(state.after(on), expected, "{state:?} on {on:?}");
            }
        }
    }

    #[test]
    fn rows_and_columns_stand_in_the_order_of_the_enums() {
        assert_eq!(NodeState::Pending.after(Transition::Release), Some(NodeState::Ready));
        assert_eq!(NodeState::Ready.after(Transition::Start), Some(NodeState::Running));
        assert_eq!(NodeState::Running.after(Transition::HandBack), Some(NodeState::Ready));
        assert_eq!(NodeState::Waiting.after(Transition::Wake), Some(NodeState::Ready));
        assert_eq!(NodeState::Running.after(Transition::Skip), Some(NodeState::Skipped));
        assert_eq!(NodeState::Waiting.after(Transition::Start), None);
    }
}
