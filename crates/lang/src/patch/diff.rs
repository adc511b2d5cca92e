//! The changes between two definitions, in lines for people.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::spec::{Definition, NodeSpec};

/// The changes as lines such as `+ node x`, `- edge a → b`, `~ node y: timeout, retry`.
pub fn diff(before: &Definition, after: &Definition) -> Vec<String> {
    let mut lines = Vec::new();
    let gone = before.nodes.keys().filter(|id| !after.nodes.contains_key(*id));
    lines.extend(gone.map(|id| format!("- node {id}")));
    let new = after.nodes.keys().filter(|id| !before.nodes.contains_key(*id));
    lines.extend(new.map(|id| format!("+ node {id}")));
    for (id, node) in &after.nodes {
        if let Some(old) = before.nodes.get(id).filter(|old| *old != node) {
            let fields = changed_fields(old, node);
            if !fields.is_empty() {
                lines.push(format!("~ node {id}: {}", fields.join(", ")));
            }
        }
    }
    let (old, new) = (edges(before), edges(after));
    lines.extend(edge_lines("-", before, &new));
    lines.extend(edge_lines("+", after, &old));
    let fields = changed_workflow_fields(before, after);
    if !fields.is_empty() {
        lines.push(format!("~ workflow: {}", fields.join(", ")));
    }
    lines
}

fn edges(definition: &Definition) -> HashSet<(&str, &str)> {
    definition
        .nodes
        .iter()
        .flat_map(|(to, node)| node.common.needs.iter().map(move |from| (from.as_str(), to.as_str())))
        .collect()
}

/// The edges of `definition` that are not in `other`, in the order of the definition.
fn edge_lines(sign: &str, definition: &Definition, other: &HashSet<(&str, &str)>) -> Vec<String> {
    let mut lines = Vec::new();
    for (to, node) in &definition.nodes {
        for from in node.common.needs.iter().filter(|from| !other.contains(&(from.as_str(), to.as_str()))) {
            lines.push(format!("{sign} edge {from} → {to}"));
        }
    }
    lines
}

/// The changed fields of a node without `needs`, which `edge_lines` reports.
fn changed_fields(before: &NodeSpec, after: &NodeSpec) -> Vec<String> {
    let (before, after) = (object(before), object(after));
    let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    keys.filter(|key| *key != "needs" && before.get(*key) != after.get(*key)).cloned().collect()
}

fn object(node: &NodeSpec) -> Map<String, Value> {
    match serde_json::to_value(node) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn changed_workflow_fields(before: &Definition, after: &Definition) -> Vec<&'static str> {
    let changed = [
        ("name", before.name != after.name),
        ("description", before.description != after.description),
        ("input", before.input != after.input),
        ("output", before.output != after.output),
        ("deadline", before.deadline != after.deadline),
        ("parallelism", before.parallelism != after.parallelism),
        ("concurrency", before.concurrency != after.concurrency),
        ("labels", before.labels != after.labels),
        ("inherit_labels", before.inherit_labels != after.inherit_labels),
    ];
    changed.into_iter().filter(|(_, changed)| *changed).map(|(field, _)| field).collect()
}
