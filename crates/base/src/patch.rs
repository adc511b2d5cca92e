//! One operation of a patch. `switchyard-lang` applies it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum PatchOp {
    /// Adds a node; its edges are in its `needs`.
    AddNode { id: String, node: Value },
    /// Removes a node that nothing needs any more.
    RemoveNode { id: String },
    /// Changes some fields of a node: a field replaces the old one, null removes it.
    UpdateNode { id: String, node: Value },
    /// Makes `to` need `from`.
    AddEdge { from: String, to: String },
    /// Makes `to` no longer need `from`.
    RemoveEdge { from: String, to: String },
}
