//! Runs as people and programs see them.

use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use switchyard_core::error::RunError;
use switchyard_core::run::{NodeState, RunStatus};
use switchyard_core::{Hash, Labels, NodeError, PatchId, RunId, Timestamp, time};
use switchyard_store::{RunCount, RunRecord};

use crate::WaitReason;

/// A run with its nodes, its input and its output.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunView {
    pub run_id: RunId,
    pub status: RunStatus,
    pub workflow: Arc<str>,
    pub definition: Hash,
    /// Of the graph: one more than the patches it has taken.
    pub version: u32,
    pub attempt: u32,
    pub last_seq: u64,
    #[serde(with = "time::rfc3339")]
    pub accepted_at: Timestamp,
    /// When its first nodes were to start, if that was put off.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "time::rfc3339::option")]
    pub start_at: Option<Timestamp>,
    /// Of its nodes that have none of their own, 1 (last) to 10 (first).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    #[serde(with = "time::rfc3339::option")]
    pub ended_at: Option<Timestamp>,
    pub parent: Option<RunId>,
    /// The node of its parent that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_node: Option<Arc<str>>,
    /// The schedule that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    pub forked_from: Option<RunId>,
    pub input: Box<RawValue>,
    pub output: Box<RawValue>,
    pub error: Option<RunError>,
    pub nodes: NodesInOrder,
    pub patches: Vec<PatchView>,
    /// What it waits for at this moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitReason>,
    /// Values that cannot be brought back. In their places stand references to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingPayload>,
}

/// A large value that is gone from where large values are kept, or damaged there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPayload {
    /// Its place in the document, such as `nodes.fetch.output`.
    pub path: String,
    /// `cas://sha256:…`
    pub payload: String,
    pub bytes: u64,
    pub reason: String,
}

/// Nodes by id, in the order of the graph.
#[derive(Debug, Default)]
pub struct NodesInOrder(pub Vec<(Arc<str>, NodeView)>);

impl Serialize for NodesInOrder {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(id, node)| (id, node)))
    }
}

impl<'de> Deserialize<'de> for NodesInOrder {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = NodesInOrder;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("nodes by id")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NodesInOrder, A::Error> {
                let mut nodes = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    nodes.push(entry);
                }
                Ok(NodesInOrder(nodes))
            }
        }

        d.deserialize_map(InOrder)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NodeView {
    pub status: NodeState,
    pub attempts: u32,
    #[serde(with = "time::rfc3339::option")]
    pub started_at: Option<Timestamp>,
    #[serde(with = "time::rfc3339::option")]
    pub completed_at: Option<Timestamp>,
    pub output: Box<RawValue>,
    /// The output is that of an earlier execution: the node has a cache, and was not called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<NodeError>>,
    /// What it waits for, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The same for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Wait>,
    /// The runs that it has started, oldest first: the first 200 of the run. `parent=` finds all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildView>,
}

/// A run that a node started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildView {
    pub run_id: RunId,
    pub status: RunStatus,
}

/// What a node waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Wait {
    /// Its next attempt, or the end of its sleep.
    Timer,
    Approval,
    Signal {
        name: Arc<str>,
    },
    /// Runs that it started.
    Children,
}

/// A change to the graph of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatchView {
    pub patch: PatchId,
    /// Of the graph that it made.
    pub version: u32,
    pub definition: Hash,
    pub author: Arc<str>,
    pub reason: Arc<str>,
    /// The operations as they were sent.
    pub ops: Value,
    pub diff: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<PatchId>,
}

/// What a patch changed, or would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatchReport {
    /// None for a dry run.
    pub patch: Option<PatchId>,
    /// The version of the graph that the patch makes, or would make.
    pub version: u32,
    pub diff: Vec<Arc<str>>,
}

/// A run and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAt {
    pub run_id: RunId,
    pub status: RunStatus,
}

/// A new run that takes over results of an old one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    #[serde(flatten)]
    pub run: RunAt,
    /// Nodes that are not done again.
    pub kept: Vec<Arc<str>>,
    pub diff: Vec<String>,
}

/// How many runs a filter finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCountView {
    pub runs: u64,
    /// There are more: counting stopped.
    pub more: bool,
}

impl From<RunCount> for RunCountView {
    fn from(RunCount { runs, more }: RunCount) -> Self {
        Self { runs, more }
    }
}

/// A page of runs, in the order that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPage {
    pub runs: Vec<RunRecord>,
    /// The cursor of the next page.
    pub next: Option<RunId>,
    /// Of all pages, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<RunCountView>,
}
