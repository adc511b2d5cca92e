//! Assertions on a run.

use serde::de::DeserializeOwned;

use crate::{NodeState, NodeView, RunStatus, RunView};

/// A snapshot of a run. The assertions panic with the whole snapshot as message, and can be chained.
#[derive(Debug)]
pub struct ObservedRun(pub(super) RunView);

impl ObservedRun {
    /// The whole snapshot.
    pub fn view(&self) -> &RunView {
        &self.0
    }

    /// A node of the run. Panics if the graph has no node with this id.
    #[track_caller]
    pub fn node(&self, id: &str) -> &NodeView {
        let found = self.0.nodes.0.iter().find(|(node, _)| **node == *id);
        match found {
            Some((_, node)) => node,
            None => panic!("there is no node `{id}` in {:#?}", self.0),
        }
    }

    /// The output of a node. Panics if it is not of that type.
    #[track_caller]
    pub fn node_output<T: DeserializeOwned>(&self, id: &str) -> T {
        let output = self.node(id).output.get();
        match serde_json::from_str(output) {
            Ok(value) => value,
            Err(error) => panic!("the output of node `{id}` is {output}: {error}"),
        }
    }

    /// Panics unless the run has this status.
    #[track_caller]
    pub fn assert_status(&self, status: RunStatus) -> &Self {
        assert_eq!(self.0.status, status, "status of {:#?}", self.0);
        self
    }

    /// Panics unless the node is in this state.
    #[track_caller]
    pub fn assert_node(&self, id: &str, state: NodeState) -> &Self {
        assert_eq!(self.node(id).status, state, "state of node `{id}` in {:#?}", self.0);
        self
    }

    /// Panics unless the node has had this many attempts.
    #[track_caller]
    pub fn assert_attempts(&self, id: &str, attempts: u32) -> &Self {
        assert_eq!(self.node(id).attempts, attempts, "attempts at node `{id}` in {:#?}", self.0);
        self
    }

    /// Panics unless the node's last error has this code.
    #[track_caller]
    pub fn assert_error(&self, id: &str, code: &str) -> &Self {
        let found = self.node(id).error.as_ref().map(|error| &*error.code);
        assert_eq!(found, Some(code), "error of node `{id}` in {:#?}", self.0);
        self
    }
}
