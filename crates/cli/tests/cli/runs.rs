//! `switchyard runs …`

use crate::harness::{GATE, HELLO, Sandbox, assert_transcript};

/// A workflow that fails until the file `fixed` exists.
const FLAKY: &str = "
name: flaky
nodes:
  first: {type: transform, value: 1}
  check: {type: command, needs: [first], command: [cat, fixed]}
";

#[test]
fn a_run_is_listed_and_shown() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    let run = sandbox.newest_run();
    assert_transcript!(sandbox.transcript(&["runs", "list"]), @r#"
        exit 0
        --- stdout
        RUN  WORKFLOW  STATUS  ACCEPTED  TOOK  DETAIL
        [RUN]  hello  succeeded  [TIME]  [TOOK]
        --- stderr
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "list", "--status", "failed"]), @r#"
        exit 0
        --- stdout
        --- stderr
        no runs
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "list", "--status", "lost"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: `status`: `lost` is not a run status (queued, running, paused, closing, compensating, succeeded, failed, cancelled)
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "show", &run]), @r#"
        exit 0
        --- stdout
        run  [RUN]
        workflow  hello
        status  succeeded
        accepted  [TIME]
        ended  [TIME]
        events  8
        input  {"name":"Ada"}

        NODE  STATUS  ATTEMPTS  STARTED  TOOK  DETAIL
        greet  succeeded  1  [TIME]  [TOOK]
        repeat  succeeded  1  [TIME]  [TOOK]

        output: {"greeting":"Hello, Ada!"}
        --- stderr
    "#);
}

#[test]
fn pages_follow_each_other() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    for name in ["a", "b", "c"] {
        sandbox.output(&["run", "hello.yaml", "-i", &format!("name={name}")]);
    }
    let first = sandbox.json(&["runs", "list", "--limit", "2", "--json"]);
    let next = first["next"].as_str().unwrap();
    let rest = sandbox.json(&["runs", "list", "--limit", "2", "--json", "--before", next]);
    assert_eq!((first["runs"].as_array().unwrap().len(), rest["runs"].as_array().unwrap().len()), (2, 1));
}

#[test]
fn runs_are_found_by_label_and_counted() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada", "--label", "team=search", "--label", "env=prod"]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Bob", "--label", "team=ads"]);
    let found = sandbox.json(&[
        "runs",
        "list",
        "--label",
        "team=search",
        "--created-after",
        "1h",
        "--count",
        "--json",
    ]);
    assert_eq!(found["runs"].as_array().unwrap().len(), 1);
    assert_eq!(found["runs"][0]["labels"], serde_json::json!({"env": "prod", "team": "search"}));
    assert_eq!(found["count"], serde_json::json!({"runs": 1, "more": false}));
    let both = sandbox.json(&["runs", "list", "--filter", "status=succeeded,failed order=oldest", "--json"]);
    assert_eq!(both["runs"][0]["labels"]["team"], "search");
    assert_transcript!(sandbox.transcript(&["runs", "list", "--filter", "statsu=failed"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: a filter has no field `statsu`; did you mean `status`?
    "#);
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml", "-i", "name=Ada", "--label", "a b=c"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: `a b` is not the key of a label: a letter or digit, then letters, digits, `_`, `-`, `.`, at most 63 of them
    "#);
}

#[test]
fn history_is_printed_and_travelled() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    let run = sandbox.newest_run();
    assert_transcript!(sandbox.transcript(&["runs", "events", &run, "--after", "1"]), @r#"
        exit 0
        --- stdout
            2  [TIME]  node_started  {"node":"greet","attempt":1,"claim":1,"worker":"embedded-[PID]"}
            3  [TIME]  node_succeeded  {"node":"greet","output":"Hello, Ada!"}
            4  [TIME]  node_started  {"node":"repeat","attempt":1,"claim":1,"worker":"embedded-[PID]"}
            5  [TIME]  node_succeeded  {"node":"repeat","output":{"text":"Hello, Ada!"}}
            6  [TIME]  node_started  {"node":"/output","attempt":1,"claim":1,"worker":"embedded-[PID]"}
            7  [TIME]  node_succeeded  {"node":"/output","output":{"greeting":"Hello, Ada!"}}
            8  [TIME]  run_ended  {"status":"succeeded","output":{"greeting":"Hello, Ada!"},"error":null}
        --- stderr
    "#);
    let lines = sandbox.output(&["runs", "events", &run, "--json"]);
    let lines = String::from_utf8(lines.stdout).unwrap();
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.last().unwrap()["seq"], events.len());
    let then = sandbox.json(&["runs", "show", &run, "--at", "2", "--json"]);
    assert_eq!((&then["status"], &then["nodes"]["greet"]["status"]), (&"running".into(), &"running".into()));
    assert_eq!(then["nodes"]["repeat"]["status"], "pending");
    assert_transcript!(sandbox.transcript(&["runs", "show", &run, "--at", "99"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: [RUN] has 8 events; there is no event 99
    "#);
    assert_eq!(sandbox.output(&["runs", "show", &run, "--at", "0"]).status.code(), Some(2));
    assert_eq!(sandbox.output(&["runs", "events", "run_00000000000000000000000000"]).status.code(), Some(2));
}

#[test]
fn a_failed_run_is_retried_from_what_failed() {
    let sandbox = Sandbox::with(&[("flaky.yaml", FLAKY)]);
    assert_eq!(sandbox.output(&["run", "flaky.yaml", "--allow-commands"]).status.code(), Some(1));
    let run = sandbox.newest_run();
    sandbox.file("fixed", "\"now\"");
    assert_transcript!(sandbox.transcript(&["runs", "retry", &run, "--allow-commands"]), @r#"
        exit 0
        --- stdout
        "now"
        --- stderr
        [RUN] of flaky
        check started
        check succeeded ([TOOK])
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "retry", &run]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: a run that is succeeded cannot be retried
    "#);
}

#[test]
fn a_run_is_forked_from_a_step() {
    let sandbox = Sandbox::with(&[
        ("hello.yaml", HELLO),
        ("edit.yaml", "- {op: update_node, id: repeat, node: {input: {text: edited}}}"),
    ]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    let run = sandbox.newest_run();
    assert_transcript!(sandbox.transcript(&["runs", "fork", &run, "--from", "repeat", "--edit", "edit.yaml"]), @r#"
        exit 0
        --- stdout
        {"greeting":"edited"}
        --- stderr
        [RUN] forked from [RUN], kept: greet
          ~ node repeat: input
        [RUN] of hello
        repeat started
        repeat succeeded ([TOOK])
    "#);
    let fork = sandbox.json(&["runs", "fork", &run, "--from", "greet", "--input", r#"{"name":"Bob"}"#]);
    assert_eq!(fork["greeting"], "Hello, Bob!");
    assert_transcript!(sandbox.transcript(&["runs", "fork", &run, "--from", "nowhere"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no node `nowhere` in this run
    "#);
    assert_eq!(
        sandbox.output(&["runs", "fork", &run, "--from", "greet", "--input", "{}"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_run_is_paused_resumed_and_cancelled() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let run = sandbox.interrupted_at_gate();
    assert_transcript!(sandbox.transcript(&["runs", "pause", &run]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: paused
        hint: switchyard runs resume [RUN]
    "#);
    assert_transcript!(sandbox.transcript(&["run", "--resume", &run]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: [RUN] is paused
        hint: switchyard runs resume [RUN]
    "#);
    assert_transcript!(sandbox.transcript(&["run", "--resume", "all"]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN] is paused and left alone
        hint: switchyard runs resume [RUN]
        nothing to resume
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "resume", &run]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: running
        hint: no worker runs now; carry it on with switchyard run --resume [RUN]
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "resume", &run]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: a run that is running cannot be resumed
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "cancel", &run, "--reason", "not needed"]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: cancelled
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "cancel", &run]), @r#"
        exit 1
        --- stdout
        --- stderr
        error: a run that is cancelled cannot be cancelled
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "watch", &run]), @r#"
        exit 1
        --- stdout
        --- stderr
        before started
        before succeeded ([TOOK])
        gate started
        gate waits for signal `go`
        paused by ada
        resumed by ada
        cancelled by ada: not needed
        error: [RUN] was cancelled: cancelled by ada: not needed (cancelled)
    "#);
}

#[test]
fn a_run_of_another_process_is_watched_to_its_end() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let run = sandbox.interrupted_at_gate();
    let mut watching = sandbox.spawn(&["runs", "watch", &run]);
    watching.wait_for("gate waits for signal");
    sandbox.output(&["runs", "signal", &run, "go"]);
    watching.wait_for("signal `go` came");
    sandbox.output(&["run", "--resume", &run]);
    let (code, said) = watching.ends();
    assert_eq!(code, Some(0), "{said}");
    assert_transcript!(said, @r#"
        before started
        before succeeded ([TOOK])
        gate started
        gate waits for signal `go`
        signal `go` came
        gate succeeded ([TOOK])
        after started
        after succeeded ([TOOK])
    "#);
}

#[test]
fn logs_of_a_program_are_shown_in_order() {
    let text = r#"
name: noisy
nodes:
  one: {type: command, command: [sh, -c, "echo first >&2; echo second >&2; echo done"]}
  two: {type: command, needs: [one], command: [sh, -c, 'printf "\033[2Jthird" >&2; exit 1'], on_error: continue}
"#;
    let sandbox = Sandbox::with(&[("noisy.yaml", text)]);
    assert!(sandbox.output(&["run", "noisy.yaml", "--allow-commands"]).status.success());
    let run = sandbox.newest_run();
    assert_transcript!(sandbox.transcript(&["runs", "logs", &run]), @r#"
    exit 0
    --- stdout
    [TIME]  one  -  first
    [TIME]  one  -  second
    [TIME]  two  -  \u{1b}[2Jthird
    --- stderr
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "logs", &run, "--node", "two", "--follow"]), @r#"
    exit 0
    --- stdout
    [TIME]  two  -  \u{1b}[2Jthird
    --- stderr
    "#);
    let lines = sandbox.json(&["runs", "logs", &run, "--node", "one", "--json"]);
    assert_eq!(lines["lines"][1]["message"], "second");
    let up = sandbox.up();
    assert_transcript!(sandbox.transcript(&["runs", "logs", &run, "--follow"]), @r#"
    exit 0
    --- stdout
    [TIME]  one  -  first
    [TIME]  one  -  second
    [TIME]  two  -  \u{1b}[2Jthird
    --- stderr
    "#);
    drop(up);
}
