//! `switchyard run`, from its start to its end.

use std::io::Write;
use std::process::Stdio;

use crate::harness::{HELLO, Sandbox, assert_transcript, transcript};

const UNLUCKY: &str = "
name: unlucky
nodes:
  good: {type: transform, value: 1}
  bad:
    type: function
    function: fail
    needs: [good]
    input: {message: no luck}
    retry: {max_attempts: 2, initial: 1ms, jitter: false}
";

#[test]
fn stdout_is_the_output_and_stderr_the_progress() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "--input", r#"{"name":"Ada"}"#]), @r#"
        exit 0
        --- stdout
        {"greeting":"Hello, Ada!"}
        --- stderr
        [RUN] of hello
        greet started
        greet succeeded ([TOOK])
        repeat started
        repeat succeeded ([TOOK])
    "#);
    assert!(sandbox.path().join("switchyard-data/switchyard.db").exists());
}

#[test]
fn an_input_comes_as_json_as_a_file_or_as_fields() {
    let sandbox = Sandbox::with(&[
        ("hello.yaml", HELLO),
        ("input.yaml", "name: Grace"),
        ("input.json", r#"{"name": "Joan"}"#),
    ]);
    let greeting = |args: &[&str]| {
        let args = [&["run", "hello.yaml"], args].concat();
        sandbox.json(&args)["greeting"].as_str().unwrap().to_owned()
    };
    assert_eq!(greeting(&["-i", "name=Ada"]), "Hello, Ada!");
    assert_eq!(greeting(&["-i", "name=\"Ada B\""]), "Hello, Ada B!");
    assert_eq!(greeting(&["--input-file", "input.yaml"]), "Hello, Grace!");
    assert_eq!(greeting(&["--input-file", "input.json"]), "Hello, Joan!");
}

#[test]
fn a_workflow_comes_through_a_pipe() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["run", "-", "-i", "name=Ada"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(HELLO.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"greeting\":\"Hello, Ada!\"}\n",
        "{}",
        transcript(&output)
    );
}

#[test]
fn a_document_has_exactly_these_keys() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let document = sandbox.json(&["run", "hello.yaml", "-i", "name=Ada", "--json"]);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&document), ["run_id", "status", "output", "error", "nodes"]);
    assert_eq!(keys(&document["nodes"]), ["greet", "repeat"]);
    let node = &document["nodes"]["greet"];
    assert_eq!(keys(node), ["status", "attempts", "started_at", "completed_at", "output"]);
    assert_eq!((&document["status"], &document["error"]), (&"succeeded".into(), &serde_json::Value::Null));
    assert_eq!(
        (&node["status"], &node["attempts"], &node["output"]),
        (&"succeeded".into(), &1.into(), &"Hello, Ada!".into())
    );
}

#[test]
fn a_failure_names_node_attempt_and_cause() {
    let sandbox = Sandbox::with(&[("unlucky.yaml", UNLUCKY)]);
    assert_transcript!(sandbox.transcript(&["run", "unlucky.yaml"]), @r#"
        exit 1
        --- stdout
        --- stderr
        [RUN] of unlucky
        good started
        good succeeded ([TOOK])
        bad started
        bad failed: no luck (failed), attempt 2 in [TIME]
        bad started, attempt 2
        bad failed: no luck (failed)
        error: [RUN] failed: node `bad`, attempt 2: no luck (failed)
        hint: switchyard runs retry [RUN]
    "#);
    let output = sandbox.output(&["run", "unlucky.yaml", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(document["status"], "failed");
    assert_eq!((&document["error"]["node"], &document["error"]["attempt"]), (&"bad".into(), &2.into()));
    assert_eq!(document["nodes"]["bad"]["status"], "failed");
}

#[test]
fn what_was_typed_wrong_touches_no_folder() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml"]), @r#"
        exit 2
        --- stdout
        --- stderr
        input: missing `name`
        error: the input is not valid: 1 problem
    "#);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "--input", "{name: Ada}"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: --input is not JSON: key must be a string at line 1 column 2
        hint: quote it for the shell, such as '{"name": "Ada"}', and text inside with ""
    "#);
    assert_transcript!(sandbox.transcript(&["run", "helo.yaml"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is neither a file nor a registered workflow `helo.yaml`
        hint: switchyard workflows list
    "#);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "-i", "Ada"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: `-i Ada` has no `=`
        hint: write -i name=Ada
    "#);
    assert_eq!(sandbox.output(&["run"]).status.code(), Some(2));
    assert_eq!(sandbox.output(&["run", "hello.yaml", "--resume", "all"]).status.code(), Some(2));
    assert_eq!(sandbox.output(&["run", "hello.yaml", "--deadline", "10"]).status.code(), Some(2));
    assert_eq!(sandbox.output(&["run", "hello.yaml", "--concurrency-key", "k"]).status.code(), Some(2));
    assert!(!sandbox.path().join("switchyard-data").exists());
}

#[test]
fn an_idempotency_key_answers_the_same_run() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let run = |name: &str| {
        let input = format!("name={name}");
        sandbox.output(&["run", "hello.yaml", "--json", "--idempotency-key", "k", "-i", &input])
    };
    let (first, again, other) = (run("Ada"), run("Ada"), run("Bob"));
    assert_eq!(first.stdout, again.stdout);
    assert_transcript!(transcript(&other), @r#"
        exit 1
        --- stdout
        --- stderr
        error: idempotency key `k` was used for [RUN] with a different workflow or input
    "#);
}

#[test]
fn a_detached_run_is_accepted_and_goes_on_later() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "-i", "name=Ada", "--detach"]), @r#"
        exit 0
        --- stdout
        [RUN]
        --- stderr
        hint: switchyard run --resume [RUN]
    "#);
    assert_transcript!(sandbox.transcript(&["run", "--resume", "all"]), @r#"
        exit 0
        --- stdout
        [RUN] succeeded
        --- stderr
        took up 1 run
    "#);
    assert_transcript!(sandbox.transcript(&["run", "--resume", "all"]), @r#"
        exit 0
        --- stdout
        --- stderr
        nothing to resume
    "#);
}

#[test]
fn runs_from_before_go_on_as_well() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada", "--detach"]);
    let output = sandbox.transcript(&["run", "hello.yaml", "-i", "name=Bob"]);
    assert!(output.contains("took up 1 unfinished run from before, which goes on as well"), "{output}");
}

#[test]
fn commands_run_only_if_allowed() {
    let sandbox = Sandbox::with(&[(
        "shell.yaml",
        "name: shell\nnodes: {a: {type: command, command: [cat], input: {x: 1}}}",
    )]);
    assert_transcript!(sandbox.transcript(&["run", "shell.yaml"]), @r#"
        exit 1
        --- stdout
        --- stderr
        [RUN] of shell
        a started
        a failed: this worker runs no commands; start with --allow-commands if it should (commands_not_allowed)
        error: [RUN] failed: node `a`, attempt 1: this worker runs no commands; start with --allow-commands if it should (commands_not_allowed)
        hint: switchyard runs retry [RUN]
    "#);
    assert_eq!(sandbox.json(&["run", "shell.yaml", "--allow-commands"]), serde_json::json!({"x": 1}));
}

#[test]
fn a_deadline_ends_a_run() {
    let sandbox = Sandbox::with(&[("gate.yaml", crate::harness::GATE)]);
    assert_transcript!(sandbox.transcript(&["run", "gate.yaml", "--deadline", "50ms"]), @r#"
        exit 1
        --- stdout
        --- stderr
        [RUN] of gate
        before started
        before succeeded ([TOOK])
        gate started
        gate waits for signal `go`
        hint: stop with Ctrl-C, then switchyard runs signal [RUN] go, then switchyard run --resume [RUN]
        error: [RUN] failed: the run did not end before its deadline (deadline_exceeded)
        hint: switchyard runs retry [RUN]
    "#);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    let run = sandbox.newest_run();
    for args in
        [&["schema"][..], &["runs", "events", &run], &["completions", "bash"], &["runs", "show", &run]]
    {
        let mut child = sandbox.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

#[test]
fn a_run_can_start_later() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let begun = ["run", "hello.yaml", "-i", "name=Ada", "--delay", "1h", "--priority", "9", "--detach"];
    assert!(sandbox.output(&begun).status.success());
    let run = sandbox.newest_run();
    assert_transcript!(sandbox.transcript(&["runs", "show", &run]), @r#"
    exit 0
    --- stdout
    run  [RUN]
    workflow  hello
    status  queued
    accepted  [TIME]
    priority  9
    events  1
    input  {"name":"Ada"}
    waiting  starts at [TIME]

    NODE  STATUS  ATTEMPTS  STARTED  TOOK  DETAIL
    greet  pending  0  -  -
    repeat  pending  0  -  -
    --- stderr
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "cancel", &run]), @r#"
    exit 0
    --- stdout
    --- stderr
    [RUN]: cancelled
    "#);
    let ran = ["run", "hello.yaml", "-i", "name=Ada", "--start-at", "2020-01-31T09:00:00Z"];
    assert_transcript!(sandbox.transcript(&ran), @r#"
    exit 0
    --- stdout
    {"greeting":"Hello, Ada!"}
    --- stderr
    [RUN] of hello
    greet started
    greet succeeded ([TOOK])
    repeat started
    repeat succeeded ([TOOK])
    "#);
    let both = ["run", "hello.yaml", "--delay", "1h", "--start-at", "2020-01-31T09:00:00Z"];
    assert_transcript!(sandbox.transcript(&both), @r#"
    exit 2
    --- stdout
    --- stderr
    error: the argument '--delay <DURATION>' cannot be used with '--start-at <TIME>'

    Usage: switchyard run --delay <DURATION> <FILE>

    For more information, try '--help'.
    "#);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "--priority", "11"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: invalid value '11' for '--priority <N>': 11 is not in 1..=10

    For more information, try '--help'.
    "#);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "--start-at", "noon"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: invalid value 'noon' for '--start-at <TIME>': `noon` is not a time

    For more information, try '--help'.
    "#);
}
