//! Patches: changes to a definition that an agent or a person sends to rewrite the graph of a running run.
//!
//! A patch is applied to a copy, and the copy is compiled: it applies whole or not at all. The core checks whether the
//! changed nodes have started, by comparing fingerprints.

use serde_json::Value;
use switchyard_base::{Diagnostic, Diagnostics, PatchOp, suggest};

use crate::decode;
use crate::input;
use crate::spec::{Definition, NodeSpec};

mod diff;

pub use diff::diff;

/// The definition with all of `ops` applied, in order. Compile it to see whether it is valid.
pub fn apply(definition: &Definition, ops: &[PatchOp]) -> Result<Definition, Diagnostics> {
    let mut patched = definition.clone();
    for (index, op) in ops.iter().enumerate() {
        apply_one(&mut patched, op).map_err(|refusal| refusal.into_diagnostics(index))?;
    }
    Ok(patched)
}

enum Refusal {
    Plain { message: String, hint: Option<String> },
    BadNode(Diagnostics),
}

impl Refusal {
    fn new(message: String) -> Self {
        Self::Plain { message, hint: None }
    }

    fn into_diagnostics(self, index: usize) -> Diagnostics {
        let path = format!("ops[{index}]");
        let list = match self {
            Self::Plain { message, hint } => vec![Diagnostic { message, hint, path, position: None }],
            Self::BadNode(diagnostics) => {
                let inside = |diagnostic: &Diagnostic| match diagnostic.path.as_str() {
                    "" => format!("{path}.node"),
                    rest => format!("{path}.node.{rest}"),
                };
                diagnostics.iter().map(|found| Diagnostic { path: inside(found), ..found.clone() }).collect()
            }
        };
        Diagnostics::from_list(list).unwrap_or_else(|| Diagnostics::one(Diagnostic::plain("bad patch")))
    }
}

fn apply_one(definition: &mut Definition, op: &PatchOp) -> Result<(), Refusal> {
    match op {
        PatchOp::AddNode { id, node } => {
            if definition.nodes.contains_key(id) {
                return Err(Refusal::Plain {
                    message: format!("there is a node `{id}` already"),
                    hint: Some("use `update_node` to change it".to_owned()),
                });
            }
            let mut node = decode::decode_node(node).map_err(Refusal::BadNode)?;
            input::adopt_node(&mut node);
            definition.nodes.insert(id.clone(), node);
        }
        PatchOp::RemoveNode { id } => {
            find(definition, id)?;
            refuse_if_needed(definition, id)?;
            definition.nodes.shift_remove(id);
        }
        PatchOp::UpdateNode { id, node } => {
            let merged = merge(find(definition, id)?, node)?;
            *find(definition, id)? = merged;
        }
        PatchOp::AddEdge { from, to } => {
            find(definition, from)?;
            let needs = &mut find(definition, to)?.common.needs;
            if needs.contains(from) {
                return Err(Refusal::new(format!("there is an edge {from} → {to} already")));
            }
            needs.push(from.clone());
        }
        PatchOp::RemoveEdge { from, to } => {
            find(definition, from)?;
            let needs = &mut find(definition, to)?.common.needs;
            let Some(place) = needs.iter().position(|need| need == from) else {
                return Err(Refusal::new(format!("there is no edge {from} → {to}")));
            };
            needs.remove(place);
        }
    }
    Ok(())
}

fn find<'d>(definition: &'d mut Definition, id: &str) -> Result<&'d mut NodeSpec, Refusal> {
    if !definition.nodes.contains_key(id) {
        let ids: Vec<&str> = definition.nodes.keys().map(String::as_str).collect();
        let hint = suggest::hint(id, &ids, "nodes");
        return Err(Refusal::Plain { message: format!("unknown node `{id}`"), hint });
    }
    definition.nodes.get_mut(id).ok_or_else(|| Refusal::new(format!("unknown node `{id}`")))
}

/// Refuses to remove a node that others need. The compiler would report the need too, but not at the wrong op.
fn refuse_if_needed(definition: &Definition, id: &str) -> Result<(), Refusal> {
    let needing: Vec<&str> = definition
        .nodes
        .iter()
        .filter(|(_, node)| node.common.needs.iter().any(|need| need == id))
        .map(|(id, _)| id.as_str())
        .take(5)
        .collect();
    match needing.first() {
        None => Ok(()),
        Some(first) => Err(Refusal::Plain {
            message: format!("`{id}` is needed by {}", needing.join(", ")),
            hint: Some(format!("remove the edge {id} → {first} first")),
        }),
    }
}

fn merge(node: &NodeSpec, changes: &Value) -> Result<NodeSpec, Refusal> {
    let Value::Object(changes) = changes else {
        return Err(Refusal::new("`node` must be a map of the fields to change".to_owned()));
    };
    let Ok(Value::Object(mut merged)) = serde_json::to_value(node) else {
        return Err(Refusal::new("the node cannot be read".to_owned()));
    };
    for (field, value) in changes {
        if value.is_null() {
            merged.shift_remove(field);
        } else {
            merged.insert(field.clone(), value.clone());
        }
    }
    let mut node = decode::decode_node(&Value::Object(merged)).map_err(Refusal::BadNode)?;
    // A rewritten child is under today's rules; an unchanged child keeps the rules that it was accepted with.
    if ["nodes", "definition", "compensate"].iter().any(|child| changes.contains_key(*child)) {
        input::adopt_node(&mut node);
    }
    Ok(node)
}

#[cfg(test)]
mod tests;
