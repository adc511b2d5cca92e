//! Edges, their order, and the fingerprints of nodes.

use std::collections::{HashMap, HashSet};

use switchyard_base::suggest;
use switchyard_core::Hash;
use switchyard_core::ir::{Edge, EdgeOn, Ir, NodeIx, OnError, Role};

use crate::limits;
use crate::problem::{At, Problems};
use crate::spec::{Definition, NodeSpec, OnErrorSpec};

/// Adds the edges of `needs` and `goto`. `None` if there are too many edges.
pub(super) fn connect(
    ir: &mut Ir,
    definition: &Definition,
    at: &At<'_>,
    problems: &mut Problems,
) -> Option<()> {
    let edges: usize = definition.nodes.values().map(|node| node.common.needs.len()).sum();
    if edges > limits::EDGES_MAX {
        let message = format!("{edges} edges, more than the limit of {}", limits::EDGES_MAX);
        problems.add_at_key(at, message, None);
        return None;
    }
    for (index, (id, node)) in definition.nodes.iter().enumerate() {
        let to = NodeIx(index as u32);
        add_needs(ir, to, node, &at.key(id), problems);
        add_error_edge(ir, to, node, &at.key(id), problems);
    }
    let steps = || (0..definition.nodes.len() as u32).map(NodeIx);
    let entries = steps().filter(|ix| ir.node(*ix).needs == 0).collect();
    let needed = |ix: &NodeIx| ir.node(*ix).dependents.iter().any(|edge| edge.on == EdgeOn::Success);
    let sinks = steps().filter(|ix| !needed(ix)).collect();
    ir.entries = entries;
    ir.sinks = sinks;
    Some(())
}

fn add_needs(ir: &mut Ir, to: NodeIx, node: &NodeSpec, at: &At<'_>, problems: &mut Problems) {
    let needs = &node.common.needs;
    let at = &at.key("needs");
    if needs.len() > limits::NEEDS_MAX {
        let message = format!("{} needs, more than the limit of {}", needs.len(), limits::NEEDS_MAX);
        problems.add_at_key(at, message, Some("gather them in stages".to_owned()));
        return;
    }
    let mut seen = HashSet::with_capacity(needs.len());
    for (index, need) in needs.iter().enumerate() {
        if !seen.insert(need.as_str()) {
            problems.add(&at.index(index), format!("`{need}` is needed twice"), None);
        } else if let Some(from) = ir.find(need) {
            add_edge(ir, from, to, EdgeOn::Success);
        } else {
            unknown_node(ir, need, &at.index(index), problems);
        }
    }
}

fn add_error_edge(ir: &mut Ir, from: NodeIx, node: &NodeSpec, at: &At<'_>, problems: &mut Problems) {
    ir.nodes[from.index()].on_error = match &node.common.on_error {
        OnErrorSpec::Fail => OnError::Fail,
        OnErrorSpec::Continue => OnError::Continue,
        OnErrorSpec::Goto(target) => match ir.find(target) {
            Some(to) => {
                add_edge(ir, from, to, EdgeOn::Failure);
                OnError::Goto(to)
            }
            None => return unknown_node(ir, target, &at.key("on_error").key("goto"), problems),
        },
    };
}

fn add_edge(ir: &mut Ir, from: NodeIx, to: NodeIx, on: EdgeOn) {
    ir.nodes[from.index()].dependents.push(Edge { to, on });
    ir.nodes[to.index()].needs += 1;
}

pub(super) fn unknown_node(ir: &Ir, id: &str, at: &At<'_>, problems: &mut Problems) {
    let shown: String = id.chars().take(80).collect();
    let hint = || {
        let ids: Vec<&str> = ir.steps().map(|(_, node)| &*node.id).collect();
        suggest::hint(id, &ids, "nodes")
    };
    let hint = if problems.is_full() { None } else { hint() };
    problems.add(at, format!("unknown node `{shown}`"), hint);
}

/// The steps in an order in which every edge points forwards, or `None` with a cycle in `problems`.
pub(super) fn topological_order(ir: &Ir, at: &At<'_>, problems: &mut Problems) -> Option<Vec<NodeIx>> {
    let mut missing: Vec<u32> = ir.nodes.iter().map(|node| node.needs).collect();
    let mut order = ir.entries.clone();
    order.reserve(ir.nodes.len());
    let mut next = 0;
    while let Some(ix) = order.get(next).copied() {
        next += 1;
        for edge in &ir.node(ix).dependents {
            missing[edge.to.index()] -= 1;
            if missing[edge.to.index()] == 0 {
                order.push(edge.to);
            }
        }
    }
    if order.len() == ir.nodes.len() {
        return Some(order);
    }
    let cycle = find_cycle(ir, &missing);
    let names: Vec<&str> = cycle.iter().map(|ix| &*ir.node(*ix).id).collect();
    let message = format!("the nodes wait for each other in a cycle: {}", shorten(&names));
    let first = names.first().copied().unwrap_or_default();
    problems.add_at_key(&at.key(first).key("needs"), message, Some("remove one of these needs".to_owned()));
    None
}

/// Finds a cycle. Every stuck node has a stuck predecessor: the search walks back until it meets a node twice.
fn find_cycle(ir: &Ir, missing: &[u32]) -> Vec<NodeIx> {
    let stuck = |ix: NodeIx| missing[ix.index()] > 0;
    let mut predecessor: HashMap<NodeIx, NodeIx> = HashMap::new();
    for from in ir.indices().filter(|ix| stuck(*ix)) {
        for edge in ir.node(from).dependents.iter().filter(|edge| stuck(edge.to)) {
            predecessor.entry(edge.to).or_insert(from);
        }
    }
    let Some(mut at) = ir.indices().find(|ix| stuck(*ix)) else { return Vec::new() };
    let mut path: Vec<NodeIx> = Vec::new();
    let mut place: HashMap<NodeIx, usize> = HashMap::new();
    while place.insert(at, path.len()).is_none() {
        path.push(at);
        match predecessor.get(&at) {
            Some(before) => at = *before,
            None => return path,
        }
    }
    let start = path.iter().position(|ix| *ix == at).unwrap_or(0);
    let mut cycle = path.split_off(start);
    cycle.reverse();
    // The cycle begins and ends at its first node in the definition, so that the message does not depend on the walk.
    let first = (0..cycle.len()).min_by_key(|place| cycle[*place]).unwrap_or(0);
    cycle.rotate_left(first);
    cycle.extend(cycle.first().copied());
    cycle
}

fn shorten(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    if names.len() <= SHOWN {
        return names.join(" → ");
    }
    let (start, end) = (&names[..SHOWN / 2], &names[names.len() - SHOWN / 2..]);
    let between = names.len() - SHOWN;
    format!("{} → … {between} more … → {}", start.join(" → "), end.join(" → "))
}

/// Sets the fingerprint of each node: what the author wrote about it, and the nodes whose errors lead to it.
pub(super) fn fingerprint(ir: &mut Ir, definition: &Definition) {
    let mut sources: HashMap<NodeIx, Vec<String>> = HashMap::new();
    for (_, node) in ir.steps() {
        for edge in node.dependents.iter().filter(|edge| edge.on == EdgeOn::Failure) {
            sources.entry(edge.to).or_default().push(node.id.to_string());
        }
    }
    for (index, node) in ir.nodes.iter_mut().enumerate() {
        let spec = |of: usize| definition.nodes.get_index(of).map(|(_, spec)| spec);
        let mut text = match node.role {
            Role::Step => serde_json::to_vec(&spec(index)),
            Role::Compensation { of } => {
                serde_json::to_vec(&spec(of.index()).and_then(|spec| spec.common.compensate.as_ref()))
            }
            Role::Output => serde_json::to_vec(&definition.output),
        }
        .unwrap_or_default();
        for source in sources.get(&NodeIx(index as u32)).into_iter().flatten() {
            text.push(0);
            text.extend_from_slice(source.as_bytes());
        }
        let [a, b, c, d, e, f, g, h, ..] = Hash::of(&text).0;
        node.fingerprint = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    }
}
