use serde_json::json;

use super::*;
use crate::Program;

fn definition() -> Definition {
    decode::decode_value(&json!({"name": "t", "nodes": {
        "a": {"type": "function", "function": "echo"},
        "b": {"type": "http", "request": {"url": "http://x"}, "needs": ["a"], "timeout": "5s"},
        "c": {"type": "transform", "needs": ["b"]},
    }}))
    .unwrap()
}

fn ops(value: Value) -> Vec<PatchOp> {
    serde_json::from_value(value).unwrap()
}

#[test]
fn every_op_applies_and_is_told() {
    let before = definition();
    let patch = ops(json!([
        {"op": "add_node", "id": "d", "node": {"type": "transform", "needs": ["a"]}},
        {"op": "add_edge", "from": "d", "to": "c"},
        {"op": "remove_edge", "from": "b", "to": "c"},
        {"op": "update_node", "id": "a", "node": {"retry": {"max_attempts": 2}, "function": "noop"}},
        {"op": "remove_node", "id": "b"},
    ]));
    let after = apply(&before, &patch).unwrap();
    assert_eq!(
        diff(&before, &after),
        [
            "- node b",
            "+ node d",
            "~ node a: function, retry",
            "- edge a → b",
            "- edge b → c",
            "+ edge d → c",
            "+ edge a → d"
        ]
    );
    let program = Program::compile(after).unwrap();
    assert_eq!(program.ir.nodes.iter().map(|node| &*node.id).collect::<Vec<_>>(), ["a", "c", "d"]);
    assert!(diff(&before, &definition()).is_empty());
}

#[test]
fn null_removes_a_field() {
    let patch = ops(json!([{"op": "update_node", "id": "b", "node": {"timeout": null}}]));
    let after = apply(&definition(), &patch).unwrap();
    assert_eq!(after.nodes["b"].common.timeout, None);
    assert_eq!(diff(&definition(), &after), ["~ node b: timeout"]);
}

#[test]
fn wrong_ops_are_refused_by_number() {
    for (op, expected) in [
        (
            json!({"op": "add_node", "id": "a", "node": {}}),
            "ops[1]: there is a node `a` already\n  hint: use `update_node` to change it",
        ),
        (
            json!({"op": "add_node", "id": "x", "node": {"type": "htp"}}),
            "ops[1].node.type: unknown node type `htp`\n  hint: did you mean `http`?",
        ),
        (
            json!({"op": "remove_node", "id": "b"}),
            "ops[1]: `b` is needed by c\n  hint: remove the edge b → c first",
        ),
        (
            json!({"op": "remove_node", "id": "x"}),
            "ops[1]: unknown node `x`\n  hint: nodes: `a`, `b`, `c`, `new`",
        ),
        (
            json!({"op": "update_node", "id": "b", "node": {"tiemout": "1s"}}),
            "ops[1].node.tiemout: unknown field `tiemout`\n  hint: did you mean `timeout`?",
        ),
        (
            json!({"op": "update_node", "id": "b", "node": []}),
            "ops[1]: `node` must be a map of the fields to change",
        ),
        (json!({"op": "add_edge", "from": "a", "to": "b"}), "ops[1]: there is an edge a → b already"),
        (json!({"op": "remove_edge", "from": "a", "to": "c"}), "ops[1]: there is no edge a → c"),
    ] {
        let patch = ops(json!([{"op": "add_node", "id": "new", "node": {"type": "transform"}}, op]));
        assert_eq!(apply(&definition(), &patch).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_patch_that_makes_a_cycle_does_not_compile() {
    let patch = ops(json!([{"op": "add_edge", "from": "c", "to": "a"}]));
    let error = Program::compile(apply(&definition(), &patch).unwrap()).unwrap_err();
    assert!(error.to_string().contains("cycle: a → b → c → a"), "{error}");
}

#[test]
fn only_touched_nodes_get_a_new_fingerprint() {
    let before = Program::compile(definition()).unwrap();
    let patch = ops(json!([{"op": "update_node", "id": "b", "node": {"on_error": {"goto": "e"}}},
        {"op": "add_node", "id": "e", "node": {"type": "transform"}}]));
    let after = Program::compile(apply(&definition(), &patch).unwrap()).unwrap();
    let prints = |program: &Program| program.ir.nodes.iter().map(|node| node.fingerprint).collect::<Vec<_>>();
    let (before, after) = (prints(&before), prints(&after));
    assert_eq!((before[0], before[2]), (after[0], after[2]));
    assert_ne!(before[1], after[1]);
}
