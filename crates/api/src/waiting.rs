//! The reasons why a run waits, as types.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::ir::queue_name;
use switchyard_core::run::RunStatus;
use switchyard_core::{ApprovalId, RunId, Timestamp, time};

/// A run and all reasons why it waits at the moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunWaits {
    pub run_id: RunId,
    pub status: RunStatus,
    /// Empty for a run that has ended, or whose nodes are all being executed.
    pub waits: Vec<WaitReason>,
}

/// One reason why a run waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitReason {
    /// The end of a sleep.
    Timer {
        node: Arc<str>,
        #[serde(with = "time::rfc3339")]
        until: Timestamp,
    },
    /// The next attempt of a node that failed.
    Retry {
        node: Arc<str>,
        #[serde(with = "time::rfc3339")]
        at: Timestamp,
    },
    Signal {
        node: Arc<str>,
        name: Arc<str>,
    },
    /// The decision of a person.
    Approval {
        node: Arc<str>,
        approval: ApprovalId,
        approver: Option<Arc<str>>,
    },
    /// Runs that a node started.
    Children {
        node: Arc<str>,
        /// How many have not ended.
        open: u32,
        count: u32,
    },
    /// The time of the run's delayed start.
    Start {
        #[serde(with = "time::rfc3339")]
        at: Timestamp,
    },
    /// Other runs with the same concurrency key.
    ConcurrencyKey {
        key: Arc<str>,
    },
    /// The run is paused and waits to be resumed.
    Resume {},
    /// A free slot of a worker: the node is in a queue that live workers serve.
    Queue {
        node: Arc<str>,
        queue: Arc<str>,
    },
    /// A worker: no live worker serves the node's queue.
    Worker {
        node: Arc<str>,
        queue: Arc<str>,
    },
}

impl WaitReason {
    /// A sentence that says what no worker serves, if this is [`WaitReason::Worker`].
    pub fn unserved(&self) -> Option<String> {
        match self {
            Self::Worker { queue, .. } => Some(unserved(queue)),
            _ => None,
        }
    }
}

/// A sentence that says that no worker serves a queue.
pub fn unserved(queue: &str) -> String {
    match (queue_name::function_of(queue), queue.strip_prefix("function.")) {
        (Some(function), _) => format!("no worker serves function `{function}`"),
        (None, Some(named)) => format!("no worker serves queue `{named}`"),
        (None, None) => format!("no worker takes tasks of type `{queue}`"),
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timer { node, until } => write!(f, "{node} sleeps until {until}"),
            Self::Retry { node, at } => write!(f, "{node} makes its next attempt at {at}"),
            Self::Signal { node, name } => write!(f, "{node} waits for signal `{name}`"),
            Self::Approval { node, approval, approver: None } => {
                write!(f, "{node} waits for approval {approval}")
            }
            Self::Approval { node, approval, approver: Some(approver) } => {
                write!(f, "{node} waits for approval {approval} by {approver}")
            }
            Self::Children { node, open, count } => write!(f, "{node} waits for {open} of {count} runs"),
            Self::Start { at } => write!(f, "starts at {at}"),
            Self::ConcurrencyKey { key } => write!(f, "queued behind its concurrency key `{key}`"),
            Self::Resume {} => write!(f, "paused"),
            Self::Queue { node, queue } => {
                write!(f, "{node} waits for a free worker of queue `{queue}`")
            }
            Self::Worker { queue, .. } => f.write_str(&unserved(queue)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_as_a_sentence_and_is_tagged_for_programs() {
        let reason = WaitReason::Worker { node: "n".into(), queue: "function:enrich".into() };
        assert_eq!(reason.to_string(), "no worker serves function `enrich`");
        assert_eq!(unserved("function.gpu"), "no worker serves queue `gpu`");
        assert_eq!(unserved("http"), "no worker takes tasks of type `http`");
        let document = serde_json::to_value(&reason).unwrap();
        let expected = serde_json::json!({"for": "worker", "node": "n", "queue": "function:enrich"});
        assert_eq!(document, expected);
        assert_eq!(serde_json::from_value::<WaitReason>(document).unwrap(), reason);
    }
}
