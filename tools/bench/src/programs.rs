//! The workflows that are measured.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use switchyard_lang::Program;

fn program(nodes: Map<String, Value>) -> anyhow::Result<Arc<Program>> {
    let definition = json!({"name": "bench", "nodes": nodes});
    Program::compile_value(&definition).map(Arc::new).map_err(|problems| anyhow::anyhow!("{problems}"))
}

/// A chain of steps, each calling `function`.
pub(crate) fn chain(steps: usize, function: &str) -> anyhow::Result<Arc<Program>> {
    let node = |i: usize| {
        let needs: Vec<String> = i.checked_sub(1).map(|before| format!("n{before}")).into_iter().collect();
        (format!("n{i}"), json!({"type": "function", "function": function, "needs": needs}))
    };
    program((0..steps.max(1)).map(node).collect())
}

/// One node, `width` nodes that need it, and one that needs all of those.
pub(crate) fn fan(width: usize) -> anyhow::Result<Arc<Program>> {
    let mut nodes = Map::new();
    nodes.insert("first".into(), json!({"type": "function", "function": "noop"}));
    for i in 0..width {
        nodes.insert(format!("n{i}"), json!({"type": "function", "function": "noop", "needs": ["first"]}));
    }
    let all: Vec<String> = (0..width).map(|i| format!("n{i}")).collect();
    nodes.insert("last".into(), json!({"type": "function", "function": "noop", "needs": all}));
    program(nodes)
}

/// A list of `items` children with one node each.
pub(crate) fn map(items: usize) -> anyhow::Result<Arc<Program>> {
    let list: Vec<usize> = (0..items).collect();
    let body = json!({"n": {"type": "function", "function": "noop"}});
    program(Map::from_iter([("each".to_owned(), json!({"type": "map", "items": list, "nodes": body}))]))
}

/// A run that waits at its first node for a signal, with `steps - 1` nodes behind it.
pub(crate) fn waiting(steps: usize) -> anyhow::Result<Arc<Program>> {
    waiting_at(0, steps)
}

/// A chain whose node number `at` waits for a signal.
pub(crate) fn waiting_at(at: usize, steps: usize) -> anyhow::Result<Arc<Program>> {
    let node = |i: usize| {
        let needs: Vec<String> = i.checked_sub(1).map(|before| format!("n{before}")).into_iter().collect();
        let what = match i == at {
            true => json!({"type": "wait", "signal": "go", "needs": needs}),
            false => json!({"type": "function", "function": "noop", "needs": needs}),
        };
        (format!("n{i}"), what)
    };
    program((0..steps.max(1)).map(node).collect())
}
