//! The graph of an interrupted run is changed, and changed back.

use crate::harness::{GATE, Sandbox, assert_transcript};

const OPS: &str = "
ops:
  - {op: add_node, id: check, node: {type: transform, needs: [gate], value: checked}}
  - {op: add_edge, from: check, to: after}
";

#[test]
fn a_patch_is_tried_applied_listed_and_undone() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE), ("ops.yaml", OPS)]);
    let run = sandbox.interrupted_at_gate();
    assert_transcript!(sandbox.transcript(&["patch", "apply", &run, "ops.yaml", "--dry-run"]), @r#"
        exit 0
        --- stdout
        + node check
        + edge check → after
        + edge gate → check
        --- stderr
        dry run: it would make version 2 of the graph
    "#);
    assert_transcript!(sandbox.transcript(&["patch", "list", &run]), @r#"
        exit 0
        --- stdout
        --- stderr
        no patches
    "#);
    assert_transcript!(sandbox.transcript(&["patch", "apply", &run, "ops.yaml", "--reason", "be sure"]), @r#"
        exit 0
        --- stdout
        + node check
        + edge check → after
        + edge gate → check
        --- stderr
        [PATCH] made version 2 of the graph
        hint: no worker runs now; carry it on with switchyard run --resume [RUN]
    "#);
    let patch = sandbox.json(&["patch", "list", &run, "--json"])[0]["patch"].as_str().unwrap().to_owned();
    assert_transcript!(sandbox.transcript(&["patch", "undo", &run, &patch, "--dry-run"]), @r#"
        exit 0
        --- stdout
        - node check
        - edge check → after
        - edge gate → check
        --- stderr
        dry run: it would make version 3 of the graph
    "#);
    assert_transcript!(sandbox.transcript(&["patch", "undo", &run, &patch]), @r#"
        exit 0
        --- stdout
        - node check
        - edge check → after
        - edge gate → check
        --- stderr
        [PATCH] made version 3 of the graph
        hint: no worker runs now; carry it on with switchyard run --resume [RUN]
    "#);
    assert_transcript!(sandbox.transcript(&["patch", "undo", &run, &patch]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no patch `[PATCH]` on this run, or it was undone already
    "#);
    let report = sandbox.json(&["patch", "apply", &run, "ops.yaml", "--json", "--author", "agent"]);
    assert_eq!(report["version"], 4);
    assert_transcript!(sandbox.transcript(&["patch", "list", &run]), @r#"
        exit 0
        --- stdout
        PATCH  VERSION  AUTHOR  REASON  UNDONE  CHANGES
        [PATCH]  2  ada  be sure  yes  + node check
            + edge check → after
            + edge gate → check
        [PATCH]  3  ada  undo [PATCH]  no  - node check
            - edge check → after
            - edge gate → check
        [PATCH]  4  agent  no  + node check
            + edge check → after
            + edge gate → check
        --- stderr
    "#);
    sandbox.output(&["runs", "signal", &run, "go"]);
    let document = sandbox.json(&["run", "--resume", &run, "--json"]);
    assert_eq!(document["nodes"]["check"]["output"], "checked");
}

#[test]
fn what_cannot_be_patched_is_said() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE), ("ops.yaml", OPS)]);
    let run = sandbox.interrupted_at_gate();
    let apply = |ops: &str, more: &[&str]| {
        sandbox.file("bad.yaml", ops);
        sandbox.transcript(&[&["patch", "apply", run.as_str(), "bad.yaml"], more].concat())
    };
    assert_transcript!(apply("- {op: remove_node, id: before}", &[]), @r#"
        exit 2
        --- stdout
        --- stderr
        ops[0]: `before` is needed by gate
          hint: remove the edge before → gate first
        error: bad.yaml is not valid: 1 problem
    "#);
    assert_transcript!(apply("- {op: update_node, id: before, node: {value: 2}}", &[]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: node `before` has started: a patch can neither change nor remove it
    "#);
    assert_transcript!(apply("- {op: update_node, id: aftr, node: {value: 2}}", &[]), @r#"
        exit 2
        --- stdout
        --- stderr
        ops[0]: unknown node `aftr`
          hint: did you mean `after`?
        error: bad.yaml is not valid: 1 problem
    "#);
    assert_transcript!(apply("- {op: renam_node, id: before}", &[]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: bad.yaml, operation 1: unknown variant `renam_node`, expected one of `add_node`, `remove_node`, `update_node`, `add_edge`, `remove_edge`
    "#);
    assert_transcript!(apply("nothing: here", &[]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: bad.yaml has no list of operations
        hint: write a list such as `- {op: remove_node, id: extra}`
    "#);
    assert_transcript!(apply("- {op: update_node, id: after, node: {value: 2}}", &["--seen", "9"]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: the patch was made for version 9 of the graph, which is now at version 1
    "#);
    assert_eq!(sandbox.output(&["patch", "undo", &run, "nonsense"]).status.code(), Some(2));
}
