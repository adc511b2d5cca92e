//! Control characters in users' text: the terminal shows them and executes none.

use std::process::Output;

use crate::harness::{Sandbox, transcript};
use crate::help::on_terminal;

/// Clears the screen, is red in C1, rings, deletes, goes back, and turns the direction of the text.
const EVIL: &str = "\u{1b}[2J\u{9b}31m\u{7}\u{7f}\u{8}\r\u{202e}";

/// The same in YAML.
const EVIL_YAML: &str = r"\e[2J\x9b31m\a\x7f\b\r\u202e";

fn workflows() -> Sandbox {
    let fails = format!(
        r#"
name: fails
nodes:
  bad: {{type: function, function: fail, input: {{message: "no{EVIL_YAML}", code: "x{EVIL_YAML}", retryable: false}}}}
"#
    );
    let asks = format!(
        r#"
name: asks
nodes:
  ask: {{type: hitl, prompt: "pay{EVIL_YAML}?", approver: "boss{EVIL_YAML}", input: {{note: "{EVIL_YAML}"}}}}
"#
    );
    let gives = format!("name: gives\nnodes: {{a: {{type: transform, value: \"out{EVIL_YAML}\"}}}}\n");
    let invalid = format!("name: invalid\nnodes:\n  \"b{EVIL_YAML}\": {{type: transform, value: 1}}\n");
    Sandbox::with(&[
        ("fails.yaml", &fails),
        ("asks.yaml", &asks),
        ("gives.yaml", &gives),
        ("invalid.yaml", &invalid),
    ])
}

/// Asserts that the text has no control characters that a terminal would execute.
#[track_caller]
fn assert_harmless(text: &str) {
    let obeyed = |c: &char| (c.is_control() && !matches!(c, '\n' | '\t')) || *c == '\u{202e}';
    let found: Vec<char> = text.chars().filter(obeyed).collect();
    assert!(found.is_empty(), "{found:?} in {text:?}");
}

#[track_caller]
fn assert_shown_harmless(output: &Output) {
    let said = transcript(output);
    assert_harmless(&said);
    assert!(said.contains(r"\u{1b}[2J\u{9b}31m\u{7}\u{7f}\u{8}\r\u{202e}"), "it is shown: {said}");
}

#[test]
fn errors_and_events_are_shown_escaped() {
    let sandbox = workflows();
    assert_shown_harmless(&sandbox.output(&["run", "fails.yaml"]));
    let run = sandbox.newest_run();
    assert_shown_harmless(&sandbox.output(&["runs", "show", &run]));
    for args in [&["runs", "list"][..], &["runs", "events", &run], &["validate", "invalid.yaml"]] {
        assert_harmless(&sandbox.transcript(args));
    }
    assert_shown_harmless(&sandbox.output(&["run", &format!("no-such-{EVIL}")]));
    assert_harmless(&sandbox.transcript(&["runs", "show", &format!("run_{EVIL}")]));
}

#[test]
fn approvals_and_comments_are_shown_escaped() {
    let sandbox = workflows();
    let mut running = sandbox.spawn(&["run", "asks.yaml"]);
    assert_harmless(&running.wait_for("waits for approval"));
    running.interrupt();
    assert_eq!(running.ends().0, Some(130));
    assert_shown_harmless(&sandbox.output(&["approvals", "list"]));
    let approvals = sandbox.json(&["approvals", "list", "--json"]);
    assert_eq!(approvals[0]["prompt"], format!("pay{EVIL}?"), "JSON is exact");
    let approval = approvals[0]["approval"].as_str().unwrap();
    sandbox.output(&["approvals", "reject", approval, "--comment", EVIL, "--by", EVIL]);
    let run = sandbox.newest_run();
    assert_shown_harmless(&sandbox.output(&["run", "--resume", &run]));
    assert_harmless(&sandbox.transcript(&["runs", "events", &run]));
}

#[test]
fn json_is_exact_for_programs_and_harmless_on_a_terminal() {
    let sandbox = workflows();
    let expected = serde_json::json!(format!("out{EVIL}"));
    assert_eq!(sandbox.json(&["run", "gives.yaml"]), expected);
    let output = sandbox.output(&["run", "gives.yaml"]);
    let bytes = "\u{9b}31m".as_bytes();
    assert!(output.stdout.windows(bytes.len()).any(|window| window == bytes), "as it is");

    let shown = on_terminal(sandbox.command(&["run", "gives.yaml"]), 100).replace("\r\n", "\n");
    assert_harmless(&shown);
    let line = shown.lines().find(|line| line.starts_with('"')).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap(), expected, "the same document");
}
