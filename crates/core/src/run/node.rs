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
    /// Its needs have not all ended.
    #[default]
    Pending,
    /// A token of it lies in a queue.
    Ready,
    /// A worker holds its token.
    Running,
    /// It waits for a moment, a person, a signal, or runs it started.
    Waiting,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Its join closed.
    Release,
    /// A worker claimed its token.
    Start,
    Succeed,
    Fail,
    /// An attempt failed and another will be made later.
    Retry,
    Skip,
    /// It gave its token up to wait for something.
    Wait,
    /// What it waited for has come; a worker has to look at it.
    Wake,
    /// Its worker gave the token back, or lost it.
    HandBack,
    Cancel,
    /// The run starts over from here, or a patch took its needs apart.
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
    /// Times a worker was handed this node; names the current claim.
    pub claim: u32,
    /// The next claim goes on with the current attempt instead of beginning another.
    pub continues: bool,
    /// Claims of the current attempt: a node that takes its workers down with it is stopped by this.
    pub deliveries: u32,
    /// Edges into it that have not been decided.
    pub open_needs: u32,
    /// Edges into it that fired.
    pub fired: u32,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    /// The seq of the event that ended it: the order in which compensations are undone.
    pub ended_seq: u64,
    pub output: Option<Payload>,
    pub error: Option<Arc<NodeError>>,
    pub wait: Option<Box<Waiting>>,
    /// How often it has waited for runs of its own: the iteration of a loop.
    pub rounds: u32,
    /// What its workers have said while they held it.
    pub said: Option<Box<NodeProgress>>,
}

/// What a waiting node remembers.
#[derive(Clone, Debug, PartialEq)]
pub enum Waiting {
    /// For its next attempt.
    Retry {
        until: Timestamp,
    },
    For(WaitFor),
    Children(Children),
    /// Its children have all ended; their results are here until a worker has looked at them.
    Gathered(Gathered),
}

impl NodeRun {
    pub fn output_or_null(&self) -> Payload {
        self.output.clone().unwrap_or_default()
    }

    /// Whether its token counts: queued, held by a worker, or waiting for anything but a person.
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

    /// Whether a worker was handed it (since the run's last retry): patches keep their hands off (I8).
    pub fn has_started(&self) -> bool {
        self.attempt > 0
    }

    /// Whether it ended in a way that lets its dependents know. A cancelled node leaves them waiting.
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
