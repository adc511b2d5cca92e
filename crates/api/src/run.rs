//! Runs, in the form that clients see.

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
    /// The version of the graph: one more than the number of patches applied to it.
    pub version: u32,
    pub attempt: u32,
    pub last_seq: u64,
    #[serde(with = "time::rfc3339")]
    pub accepted_at: Timestamp,
    /// When the first nodes start, if the start was delayed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "time::rfc3339::option")]
    pub start_at: Option<Timestamp>,
    /// The priority of nodes that have none of their own, 1 (last) to 10 (first).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    #[serde(with = "time::rfc3339::option")]
    pub ended_at: Option<Timestamp>,
    pub parent: Option<RunId>,
    /// The node of the parent run that started this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_node: Option<Arc<str>>,
    /// The schedule that started this run.
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
    /// The reasons why the run waits at the moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitReason>,
    /// Values that cannot be loaded. The document has references in their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingPayload>,
}

/// A large value that is missing from content-addressed storage, or damaged there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPayload {
    /// The value's place in the document, such as `nodes.fetch.output`.
    pub path: String,
    /// The value's reference, `cas://sha256:…`.
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
    /// Whether the output comes from the node's cache; then the node was not executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<NodeError>>,
    /// A short text that says what the node waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The same in typed form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Wait>,
    /// The runs that the node has started, oldest first, limited to the first 200 of the whole run. The filter
    /// `parent=` finds all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildView>,
}

/// A run that a node started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildView {
    pub run_id: RunId,
    pub status: RunStatus,
}

/// The thing that a node waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Wait {
    /// The node's next attempt, or the end of its sleep.
    Timer,
    Approval,
    Signal {
        name: Arc<str>,
    },
    /// Runs that the node started.
    Children,
}

/// A change to the graph of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatchView {
    pub patch: PatchId,
    /// The version of the graph that the patch made.
    pub version: u32,
    pub definition: Hash,
    pub author: Arc<str>,
    pub reason: Arc<str>,
    /// The operations as the author sent them.
    pub ops: Value,
    pub diff: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<PatchId>,
}

/// The changes that a patch made, or would make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatchReport {
    /// The id of the patch; `None` for a dry run.
    pub patch: Option<PatchId>,
    /// The version of the graph that the patch makes, or would make.
    pub version: u32,
    pub diff: Vec<Arc<str>>,
}

/// The id and the status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAt {
    pub run_id: RunId,
    pub status: RunStatus,
}

/// A new run that reuses results of an old one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    #[serde(flatten)]
    pub run: RunAt,
    /// Nodes whose results the new run reuses.
    pub kept: Vec<Arc<str>>,
    pub diff: Vec<String>,
}

/// The number of runs that match a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCountView {
    pub runs: u64,
    /// Whether there are more runs: counting stops at a limit.
    pub more: bool,
}

impl From<RunCount> for RunCountView {
    fn from(RunCount { runs, more }: RunCount) -> Self {
        Self { runs, more }
    }
}

/// A page of runs, in the requested order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPage {
    pub runs: Vec<RunRecord>,
    /// The cursor of the next page.
    pub next: Option<RunId>,
    /// The number of runs on all pages, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<RunCountView>,
}
