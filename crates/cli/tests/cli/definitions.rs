//! Workflow files: checked, described, registered.

use crate::harness::{HELLO, Sandbox, assert_transcript};

/// A workflow with fields of wrong types.
const MISTYPED: &str = "
name: mistyped
nodes:
  fetch:
    type: http
    request: {url: 'https://example.com'}
    tiemout: 10s
    retry: {initial: 10}
";

/// A workflow whose fields are well-formed but inconsistent.
const NONSENSE: &str = "
name: nonsense
nodes:
  fetch: {type: transform, value: '${{ 1 + }}'}
  save: {type: function, function: echo, needs: [fetsh]}
  one: {type: transform, needs: [two]}
  two: {type: transform, needs: [one]}
";

#[test]
fn mistakes_are_shown_with_their_place_and_what_was_meant() {
    let sandbox = Sandbox::with(&[("mistyped.yaml", MISTYPED), ("nonsense.yaml", NONSENSE)]);
    assert_transcript!(sandbox.transcript(&["run", "nonsense.yaml"]), @r#"
        exit 2
        --- stdout
        --- stderr
        nonsense.yaml:3:35: bad expression: unexpected end of the expression, at its character 4
        nonsense.yaml:4:50: unknown node `fetsh`
          hint: did you mean `fetch`?
        nonsense.yaml:5:26: the nodes wait for each other in a cycle: one → two → one
          hint: remove one of these needs
        error: nonsense.yaml is not valid: 3 problems
    "#);
    assert_transcript!(sandbox.transcript(&["run", "mistyped.yaml"]), @r#"
        exit 2
        --- stdout
        --- stderr
        mistyped.yaml:6:5: unknown field `tiemout`
          hint: did you mean `timeout`?
        mistyped.yaml:7:22: `10` is not a duration
          hint: add a unit: `10s` or `10ms`
        error: mistyped.yaml is not valid: 2 problems
    "#);
}

#[test]
fn several_files_are_checked_at_once() {
    let sandbox = Sandbox::with(&[
        ("hello.yaml", HELLO),
        ("bad.yaml", "name: bad\nnods: {}\nnodes: {a: {type: transform}}"),
    ]);
    assert_transcript!(sandbox.transcript(&["validate", "hello.yaml", "bad.yaml", "missing.yaml"]), @r#"
        exit 2
        --- stdout
        hello.yaml: ok, 2 nodes
        --- stderr
        bad.yaml:2:1: unknown field `nods`
          hint: did you mean `nodes`?
        error: bad.yaml is not valid: 1 problem
        error: cannot read missing.yaml: no such file or directory
    "#);
    assert_transcript!(sandbox.transcript(&["validate", "--json", "hello.yaml", "bad.yaml"]), @r#"
        exit 2
        --- stdout
        [{"file":"hello.yaml","valid":true,"name":"hello","nodes":2,"definition":"[HASH]","problems":[]},{"file":"bad.yaml","valid":false,"name":null,"nodes":null,"definition":null,"problems":[{"file":"bad.yaml","message":"unknown field `nods`","hint":"did you mean `nodes`?","path":"nods","position":{"line":2,"column":1,"offset":10,"len":4}}]}]
        --- stderr
    "#);
}

#[test]
fn a_child_in_another_file_is_included() {
    let sandbox = Sandbox::with(&[
        (
            "parent.yaml",
            "name: parent\nnodes: {child: {type: workflow, file: child.yaml, input: {name: Ada}}}",
        ),
        ("child.yaml", HELLO),
    ]);
    assert_eq!(sandbox.json(&["run", "parent.yaml"]), serde_json::json!({"greeting": "Hello, Ada!"}));
    let all = sandbox.json(&["runs", "list", "--all", "--json"]);
    assert_eq!(all["runs"].as_array().unwrap().len(), 2);
    sandbox.file("child.yaml", "name: child\nnodes: {a: {type: transform, vlaue: 1}}");
    let output = sandbox.transcript(&["validate", "parent.yaml"]);
    assert!(output.contains("child.yaml:2:30: unknown field `vlaue`"), "{output}");
}

#[test]
fn the_schema_is_json() {
    let schema = Sandbox::new().json(&["schema"]);
    assert_eq!(schema["title"], "Switchyard workflow");
}

#[test]
fn completions_know_the_commands() {
    let output = Sandbox::new().output(&["completions", "bash"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("approvals"));
}

#[test]
fn a_registered_workflow_is_run_by_its_name() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    assert_transcript!(sandbox.transcript(&["workflows", "register", "hello.yaml"]), @r#"
        exit 0
        --- stdout
        hello version 1
        --- stderr
    "#);
    assert_transcript!(sandbox.transcript(&["workflows", "register", "hello.yaml"]), @r#"
        exit 0
        --- stdout
        hello version 1
        --- stderr
    "#);
    sandbox.file("hello.yaml", &HELLO.replace("Hello", "Good day"));
    assert_transcript!(sandbox.transcript(&["workflows", "register", "hello.yaml"]), @r#"
        exit 0
        --- stdout
        hello version 2
        --- stderr
    "#);
    assert_eq!(sandbox.json(&["run", "hello", "-i", "name=Ada"])["greeting"], "Good day, Ada!");
    let first = sandbox.json(&["workflows", "show", "hello", "--version", "1"]);
    assert_eq!(first["nodes"]["greet"]["value"], "Hello, ${{ input.name }}!");
    assert_transcript!(sandbox.transcript(&["workflows", "list"]), @r#"
        exit 0
        --- stdout
        WORKFLOW  VERSION  REGISTERED  DEFINITION
        hello  2  [TIME]  [HASH]
        --- stderr
    "#);
    assert_transcript!(sandbox.transcript(&["workflows", "show", "hallo"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no workflow `hallo`
    "#);
    assert_transcript!(sandbox.transcript(&["run", "hallo"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is neither a file nor a registered workflow `hallo`
        hint: switchyard workflows list
    "#);
}
