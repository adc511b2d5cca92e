//! Random workflows: chains, fans and diamonds of nodes that can be interrupted.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use serde_json::{Map, Value, json};

const NODES_MAX: usize = 9;

/// The id prefix of nodes whose expression exceeds its budget.
pub(crate) const GREEDY: &str = "greedy";
/// Number of items of a list that is longer than a batch of children.
const CROWD: u32 = 300;

/// A definition whose `http` nodes call `effects`.
pub(crate) fn workflow(random: &mut StdRng, effects: &str) -> Value {
    let count = random.random_range(2..=NODES_MAX);
    let mut nodes = Map::new();
    for i in 0..count {
        let mut node = node(random, effects);
        let needs: Vec<String> = (0..i).filter(|_| random.random_bool(0.4)).map(name).collect();
        if !needs.is_empty() {
            node["needs"] = json!(needs);
        }
        nodes.insert(name(i), node);
    }
    if random.random_bool(0.05) {
        nodes.insert(format!("{GREEDY}-1"), greedy());
    }
    if random.random_bool(0.01) {
        nodes.insert("crowd".to_owned(), crowd());
    }
    let mut definition = json!({ "name": "chaos", "nodes": nodes });
    if random.random_bool(0.2) {
        definition["parallelism"] = json!(random.random_range(1..=2));
    }
    definition
}

/// The node that a patch adds to a run. It needs no other node, so it can always be added.
pub(crate) fn addition(random: &mut StdRng, effects: &str) -> (String, Value) {
    (format!("added-{:08x}", random.next_u32()), effect(random, effects, 0))
}

fn name(i: usize) -> String {
    format!("n{i}")
}

fn node(random: &mut StdRng, effects: &str) -> Value {
    let kinds: [fn(&mut StdRng, &str) -> Value; 12] = [
        plain,
        plain,
        shaky,
        nap,
        compute,
        question,
        question,
        each,
        doomed_but_ignored,
        doomed,
        news,
        forgettable,
    ];
    let kind = kinds.choose(random).unwrap_or(&kinds[0]);
    kind(random, effects)
}

fn effect(random: &mut StdRng, effects: &str, refuse: u32) -> Value {
    let takes = random.random_range(0..300);
    json!({
        "type": "http",
        "request": { "method": "POST", "url": format!("{effects}?refuse={refuse}&takes={takes}") },
        // Enough for the calls that the service refuses, and for calls that a fault interrupts.
        "retry": { "max_attempts": 12, "backoff": "fixed", "initial": "50ms", "jitter": false },
        "timeout": "10s",
    })
}

fn plain(random: &mut StdRng, effects: &str) -> Value {
    effect(random, effects, 0)
}

fn shaky(random: &mut StdRng, effects: &str) -> Value {
    let refuse = random.random_range(1..=3);
    effect(random, effects, refuse)
}

fn nap(random: &mut StdRng, _: &str) -> Value {
    json!({ "type": "sleep", "duration": format!("{}ms", random.random_range(10..1_500)) })
}

fn compute(random: &mut StdRng, _: &str) -> Value {
    json!({ "type": "transform", "value": random.random_range(0..1_000) })
}

/// A text that grows eightfold with each step, until its budget of bytes is exceeded.
fn greedy() -> Value {
    let grown = (0..12).fold("'a'".to_owned(), |text, _| format!("{text}.replace('a', 'aaaaaaaa')"));
    json!({ "type": "transform", "value": format!("${{{{ {grown} }}}}"), "on_error": "continue" })
}

fn crowd() -> Value {
    let items: Vec<u32> = (0..CROWD).collect();
    json!({ "type": "map", "items": items, "nodes": { "one": { "type": "transform", "value": 1 } } })
}

/// An approval with a time-out and a default decision, so that it never blocks a run for ever.
fn question(_: &mut StdRng, _: &str) -> Value {
    json!({ "type": "hitl", "prompt": "go on?", "timeout": "5s", "on_timeout": "approve" })
}

fn each(random: &mut StdRng, effects: &str) -> Value {
    let items: Vec<u32> = (0..random.random_range(1..=3)).collect();
    json!({
        "type": "map",
        "items": items,
        "concurrency": 2,
        "input": {},
        "nodes": { "call": effect(random, effects, 0), "rest": { "type": "sleep", "needs": ["call"], "duration": "20ms" } },
    })
}

fn doomed_but_ignored(_: &mut StdRng, _: &str) -> Value {
    json!({ "type": "function", "function": "fail", "input": { "retryable": false }, "on_error": "continue" })
}

/// A task for the worker that forgets some of its tasks: with so many attempts that the last one is unlikely to be
/// reached.
fn forgettable(_: &mut StdRng, _: &str) -> Value {
    json!({
        "type": "function",
        "function": "anything",
        "timeout": "2s",
        "retry": { "max_attempts": 20, "backoff": "fixed", "initial": "50ms", "jitter": false },
    })
}

/// A node that may fail its run, which can then be retried.
fn doomed(random: &mut StdRng, effects: &str) -> Value {
    match random.random_bool(0.3) {
        true => json!({ "type": "function", "function": "fail", "input": { "retryable": false } }),
        false => plain(random, effects),
    }
}

/// A node that waits for a signal, and continues without one after a time-out.
fn news(_: &mut StdRng, _: &str) -> Value {
    json!({ "type": "wait", "signal": "go", "timeout": "5s", "on_error": "continue" })
}
