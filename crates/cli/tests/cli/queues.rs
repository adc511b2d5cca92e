//! `queues`, and dead letters.

use rustix::process::Signal;
use switchyard_test_servers::redis::Redis;

use crate::harness::{Sandbox, assert_transcript, transcript};

const POISON: &str = "
name: poison
nodes:
  broken: {type: function, function: fail, input: {code: poisoned, message: 'it kills'}}
";

/// A workflow that kills the process that executes it.
const KILLER: &str = "
name: killer
nodes:
  kill: {type: command, command: [sh, -c, 'kill -9 $PPID']}
";

/// The transcript without hints, which differ when a server executes the runs.
fn said(sandbox: &Sandbox, args: &[&str]) -> String {
    let whole = transcript(&sandbox.output(args));
    whole.lines().filter(|line| !line.starts_with("hint: ")).map(|line| format!("{line}\n")).collect()
}

fn letters(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    sandbox.json(&["queues", "dlq", "list", "--json"]).as_array().unwrap().clone()
}

fn id(letter: &serde_json::Value) -> &str {
    letter["id"].as_str().unwrap()
}

fn look_and_purge(sandbox: &Sandbox) {
    assert_eq!(sandbox.output(&["run", "poison.yaml"]).status.code(), Some(1));
    assert_eq!(sandbox.json(&["queues", "dlq", "purge", "--all", "--json"])["purged"], 1);
    assert_transcript!(said(sandbox, &["queues"]), @r#"
    exit 0
    --- stdout
    --- stderr
    nothing waits for a worker
    "#);
    assert_transcript!(said(sandbox, &["queues", "dlq", "list"]), @r#"
    exit 0
    --- stdout
    --- stderr
    no dead letters
    "#);
    assert_eq!(sandbox.output(&["run", "poison.yaml"]).status.code(), Some(1));
    assert_transcript!(said(sandbox, &["queues"]), @r#"
    exit 0
    --- stdout
    TYPE  PRIORITY  WAITING  CLAIMED  WORKERS  OLDEST SINCE  DEAD LETTERS
    builtin  normal  0  0  -  -  1
    --- stderr
    "#);
    assert_transcript!(said(sandbox, &["queues", "dlq", "list"]), @r#"
    exit 0
    --- stdout
    DEAD LETTER  KIND  TYPE  RUN  NODE  SINCE  REASON
    [DEAD]  task  builtin  [RUN]  broken  [TIME]  it kills
    --- stderr
    "#);
    let found = letters(sandbox);
    assert_transcript!(said(sandbox, &["queues", "dlq", "show", id(&found[0])]), @r#"
    exit 0
    --- stdout
    DEAD LETTER  KIND  TYPE  RUN  NODE  SINCE  REASON
    [DEAD]  task  builtin  [RUN]  broken  [TIME]  it kills
    DELIVERED  ATTEMPT  WORKER  UNTIL  WHAT CAME OF IT
    [TIME]  1  embedded-[PID]  [TIME]  it kills (poisoned)
    --- stderr
    "#);
    for verb in ["show", "redrive", "purge"] {
        assert_transcript!(said(sandbox, &["queues", "dlq", verb, "dead_x"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no dead letter `dead_x`
        "#);
    }
    assert_eq!(sandbox.json(&["queues", "dlq", "purge", "--older-than", "1h", "--json"])["purged"], 0);
    assert_transcript!(said(sandbox, &["queues", "dlq", "purge", id(&found[0])]), @r#"
    exit 0
    --- stdout
    --- stderr
    1 removed
    "#);
    assert!(letters(sandbox).is_empty());
}

#[test]
fn on_a_folder() {
    look_and_purge(&Sandbox::with(&[("poison.yaml", POISON)]));
}

#[test]
fn through_a_server() {
    let sandbox = Sandbox::with(&[("poison.yaml", POISON)]);
    let up = sandbox.up();
    look_and_purge(&sandbox);
    up.send(Signal::TERM);
    assert_eq!(up.ends().0, Some(0));
}

#[test]
fn what_to_purge_has_to_be_said() {
    let output = Sandbox::new().output(&["queues", "dlq", "purge"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("required"), "{}", transcript(&output));
}

#[test]
fn a_signal_of_20_mb_is_refused_and_its_beginning_is_kept() {
    let redis = Redis::start();
    let url = redis.url();
    let sandbox = Sandbox::new();
    let mut up = sandbox.spawn(&["up", "-v", "--listen", "127.0.0.1:0", "--redis", &url]);
    let line = up.wait_for("http://");
    let server = format!("http://{}", line.split_once("http://").unwrap().1.split('/').next().unwrap());
    let push = |signal: &str| {
        let mut connection = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        redis::cmd("RPUSH").arg("completion_signals").arg(signal).exec(&mut connection).unwrap();
    };
    push(&format!(r#"{{"run_id": "x", "output": "{}"}}"#, "x".repeat(20_000_000)));
    let told = up.wait_for("is buried");
    assert!(told.contains("the signal has 20000029 bytes, and may have 16777216"), "{told}");
    push("{\"run_id\": \"\\u001b[2J\"}");
    let told = up.wait_for("is buried");
    assert!(told.contains(r"`\u{1b}[2J` is not a run id") && !told.contains('\u{1b}'), "{told}");

    let listed = sandbox.output(&["queues", "dlq", "list", "--json", "--server", &server]);
    assert!(listed.stdout.len() < 4_000, "{}", transcript(&listed));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(listed.as_array().unwrap().iter().all(|letter| letter.get("signal").is_none()), "{listed}");
    let shown = sandbox.json(&["queues", "dlq", "show", id(&listed[1]), "--json", "--server", &server]);
    let signal = shown["signal"].as_str().unwrap();
    assert!(signal.starts_with("oversized:20000029:{\"run_id\": \"x\"") && signal.len() < 1_100, "{signal}");
    let redriven = sandbox.transcript(&["queues", "dlq", "redrive", id(&listed[1]), "--server", &server]);
    assert!(redriven.contains("keeps only the beginning of a signal"), "{redriven}");
    up.send(Signal::TERM);
    assert_eq!(up.ends().0, Some(0));
}

#[test]
fn a_task_that_kills_its_workers_is_buried_and_can_be_redriven() {
    let settings = "[worker]\ndeliveries = 2\nallow_commands = true\n";
    let sandbox = Sandbox::with(&[("killer.yaml", KILLER), ("switchyard.toml", settings)]);
    assert_eq!(sandbox.output(&["run", "killer.yaml"]).status.code(), None, "it was killed");
    let run = sandbox.newest_run();
    assert_eq!(sandbox.output(&["run", "--resume", &run]).status.code(), None, "again");
    assert_eq!(sandbox.output(&["run", "--resume", &run]).status.code(), Some(1));
    let found = letters(&sandbox);
    let letter = sandbox.json(&["queues", "dlq", "show", id(&found[0]), "--json"]);
    assert_eq!((&letter["node"], &letter["queue"]), (&"kill".into(), &"command".into()), "{letter}");
    let ends: Vec<_> = letter["deliveries"].as_array().unwrap().iter().map(|d| d["ended"].clone()).collect();
    assert_eq!(ends, ["its process ended", "2 workers were lost while they held it (poisoned)"]);

    assert_transcript!(sandbox.transcript(&["queues", "dlq", "redrive", id(&found[0])]), @r#"
    exit 0
    --- stdout
    --- stderr
    [RUN]: running
    hint: no worker runs now; carry it on with switchyard run --resume [RUN]
    "#);
    assert!(letters(&sandbox).is_empty());
    assert_eq!(sandbox.output(&["run", "--resume", &run]).status.code(), None, "it has deliveries again");
    assert_eq!(sandbox.json(&["runs", "show", &run, "--json"])["attempt"], 2);
}
