//! The compiled graph of a workflow, as the core needs it to move a run.
//!
//! The actions of nodes (URLs, expressions) are not here: the worker that executes a node caches them by the same
//! [`Hash`]. The core sees a graph with joins, policies and queues.

pub mod queue_name;
pub mod sketch;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::retry::RetryPolicy;

/// A node's place in [`Ir::nodes`]. Only meaningful together with the IR it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeIx(pub u32);

impl NodeIx {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A compiled workflow. Immutable and shared; two equal definitions are one `Ir`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ir {
    /// The hash of the canonical definition that this was compiled from.
    pub hash: Hash,
    pub name: Arc<str>,
    pub nodes: Vec<Node>,
    #[serde(skip)]
    pub by_id: HashMap<Arc<str>, NodeIx>,
    /// Nodes without needs, in the order of the definition.
    pub entries: Vec<NodeIx>,
    /// Nodes that no other node needs. Without an `output`, the output of the only sink is the run's.
    pub sinks: Vec<NodeIx>,
    /// The hidden last step that evaluates the workflow's `output`, if it has one.
    pub output: Option<NodeIx>,
    /// How many nodes of a run may be active at once.
    pub parallelism: Option<u32>,
    pub deadline: Option<Duration>,
    /// Whether children also get the labels of their parent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherit_labels: bool,
}

impl Ir {
    /// Serialises the graph, for a store that keeps graphs beside the runs that use them.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        let mut ir: Self = serde_json::from_str(json)?;
        ir.by_id = ir.indices().map(|ix| (ir.node(ix).id.clone(), ix)).collect();
        Ok(ir)
    }

    pub fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.index()]
    }

    pub fn find(&self, id: &str) -> Option<NodeIx> {
        self.by_id.get(id).copied()
    }

    pub fn indices(&self) -> impl Iterator<Item = NodeIx> + use<> {
        (0..self.nodes.len() as u32).map(NodeIx)
    }

    /// The nodes that the author wrote, without compensations and the output step.
    pub fn steps(&self) -> impl Iterator<Item = (NodeIx, &Node)> {
        self.indices().map(|ix| (ix, self.node(ix))).filter(|(_, node)| node.role == Role::Step)
    }
}

/// One node of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub id: Arc<str>,
    pub role: Role,
    /// The queue of the workers that execute the node: `http`, `builtin`, `function:<name>`, … ([`queue_name`]).
    pub queue: Arc<str>,
    /// The priority, from 1 (last) to 10 (first).
    pub priority: u8,
    /// Set if the author gave the node no priority: the run's priority counts, if it has one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherits_priority: bool,
    pub join: Join,
    /// How many edges end here.
    pub needs: u32,
    pub dependents: Vec<Edge>,
    /// Nodes whose outputs (or errors) this node's expressions mention.
    pub reads: Vec<NodeIx>,
    pub retry: RetryPolicy,
    /// How long an attempt may take. Graphs that were stored before there was a limit have none.
    #[serde(default)]
    pub limit: AttemptLimit,
    pub on_error: OnError,
    /// The hidden node that undoes this one.
    pub compensation: Option<NodeIx>,
    /// A digest of everything the author wrote about this node, needs included: a patch must not change a started node.
    pub fingerprint: u64,
}

impl Node {
    /// The node's priority in a run that was submitted with the priority `of_run`.
    pub fn priority_in(&self, of_run: Option<u8>) -> u8 {
        of_run.filter(|_| self.inherits_priority).unwrap_or(self.priority)
    }
}

/// How long one attempt of a node may take, from its claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptLimit {
    #[default]
    Unlimited,
    /// The default of the store's settings, for handlers outside the graph's control.
    Default,
    /// The limit that the author wrote.
    Own(Duration),
}

impl AttemptLimit {
    /// The limit as a duration; `default` stands for [`AttemptLimit::Default`].
    pub fn or_default(self, default: Duration) -> Option<Duration> {
        match self {
            Self::Unlimited => None,
            Self::Default => Some(default),
            Self::Own(limit) => Some(limit),
        }
    }
}

/// Why a node is in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    Step,
    /// Runs after a failure, if the node it undoes had succeeded. Its id is `<node>/compensate`.
    Compensation {
        of: NodeIx,
    },
    /// Runs after everything else succeeded. Its id is `/output`.
    Output,
}

/// An edge fires or not, once, when the node it leaves has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub to: NodeIx,
    pub on: EdgeOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EdgeOn {
    /// From `needs`: fires when the node succeeded, or failed with `on_error: continue`.
    Success,
    /// From `on_error: { goto }`: fires when the node failed.
    Failure,
}

/// When a node with several needs may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Join {
    /// When every need has ended and at least one edge fired. If none did, the node is skipped.
    #[default]
    All,
    /// When the first edge fires. If none does, the node is skipped.
    Any,
}

/// The effect of a failed node on its run, once its retries are used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnError {
    #[default]
    Fail,
    Continue,
    /// The failure edge to this node fires; the success edges do not.
    Goto(NodeIx),
}

#[cfg(test)]
mod tests {
    use super::sketch::{DrawnOnError, Sketch};
    use super::*;

    #[test]
    fn a_graph_survives_text() {
        let sketch = Sketch::new()
            .node("a", &[])
            .with(|a| (a.on_error, a.compensated) = (DrawnOnError::Goto("c".into()), true))
            .node("b", &["a"])
            .node("c", &[])
            .with(|c| (c.any, c.limit) = (true, AttemptLimit::Own(Duration::from_millis(1_500))));
        let ir = sketch.ir();
        let again = Ir::from_json(&ir.to_json().unwrap()).unwrap();
        assert_eq!((again.hash, &again.nodes, &again.by_id), (ir.hash, &ir.nodes, &ir.by_id));
        assert_eq!((&again.entries, &again.sinks), (&ir.entries, &ir.sinks));
    }

    #[test]
    fn a_graph_from_before_there_were_limits_has_none() {
        let text = Sketch::chain(1).ir().to_json().unwrap();
        let older = text.replace(r#""limit":"Unlimited","#, "");
        assert_ne!(older, text);
        assert_eq!(Ir::from_json(&older).unwrap().nodes[0].limit, AttemptLimit::Unlimited);
    }
}
