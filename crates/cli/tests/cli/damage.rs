//! A damaged data folder: commands refuse it with hints, `doctor --deep` checks it, `--salvage` copies it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use switchyard_test_servers::postgres;
use switchyard_test_servers::redis::Redis;

use crate::harness::{HELLO, Sandbox, transcript};

/// A workflow whose output is too large for an event.
const LARGE: &str = r#"
name: large
nodes:
  make: {type: transform, value: "${{ input }}"}
  use: {type: transform, needs: [make], value: "done"}
output: "${{ nodes.use.output }}"
"#;

/// A folder whose server was killed, and the runs that it had accepted. The write-ahead log has all of them.
fn killed(runs: usize) -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let up = sandbox.up();
    let submit = |n: usize| {
        let output = sandbox.output(&["run", "hello.yaml", "--json", "-i", &format!("name=Ada {n}")]);
        assert!(output.status.success(), "{}", transcript(&output));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["run_id"].as_str().unwrap().to_owned()
    };
    let runs = (0..runs).map(submit).collect();
    up.send(Signal::KILL);
    up.ends();
    sandbox.without_server();
    (sandbox, runs)
}

fn log(sandbox: &Sandbox) -> PathBuf {
    sandbox.path().join("switchyard-data/switchyard.db-wal")
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0x20;
    fs::write(file, bytes).unwrap();
}

#[test]
fn after_a_kill_the_next_start_is_quiet_and_has_everything() {
    let (sandbox, runs) = killed(3);
    let mut up = sandbox.up();
    for run in &runs {
        assert_eq!(sandbox.json(&["runs", "show", run, "--json"])["status"], "succeeded");
    }
    up.wait_for("Ctrl-C stops it");
    up.interrupt();
    let (code, said) = up.ends();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("check") && !said.contains("warning"), "{said}");
}

#[test]
fn a_damaged_log_refuses_every_command_and_says_what_to_do() {
    let (sandbox, runs) = killed(6);
    flip(&log(&sandbox), 32 + 24 + 200);
    for command in [&["up", "--listen", "127.0.0.1:0"][..], &["runs", "list"], &["run", "--resume", "all"]] {
        let shown = sandbox.transcript(command);
        assert!(shown.starts_with("exit 3\n"), "{command:?}: {shown}");
        for part in [
            "switchyard.db-wal: frame 1 of",
            "switchyard doctor --deep",
            "switchyard doctor --salvage NEWDIR",
        ] {
            assert!(shown.contains(part), "{command:?} says nothing of {part}: {shown}");
        }
        assert!(shown.contains("has events of 6 runs"), "{shown}");
    }
    let deep = sandbox.output(&["doctor", "--deep", "--json"]);
    assert_eq!(deep.status.code(), Some(1), "{}", transcript(&deep));
    let found: Value = serde_json::from_slice(&deep.stdout).unwrap();
    let check = |name: &str| {
        found["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (check("archive")["health"].as_str(), check("histories")["health"].as_str()),
        (Some("failed"), Some("failed"))
    );
    assert!(check("histories")["found"].as_str().unwrap().starts_with("6 histories are whole"), "{found:#}");

    let salvaged = sandbox.json(&["doctor", "--salvage", "new", "--json"]);
    assert_eq!(salvaged["whole"], 6, "{salvaged:#}");
    let deep = sandbox.transcript(&["doctor", "--deep", "--data", "new"]);
    assert!(deep.starts_with("exit 0\n") && deep.contains("6 runs, "), "{deep}");
    assert!(deep.contains("all whole"), "{deep}");
    for run in &runs {
        assert_eq!(sandbox.json(&["runs", "show", run, "--json", "--data", "new"])["status"], "succeeded");
    }
    let again = sandbox.transcript(&["doctor", "--salvage", "new"]);
    assert!(again.starts_with("exit 3\n") && again.contains("is not a new or empty folder"), "{again}");
}

#[test]
fn a_payload_that_is_gone_or_damaged_is_named_and_the_run_can_be_read() {
    let sandbox = Sandbox::with(&[("large.yaml", LARGE)]);
    let input = format!("\"{}\"", "x".repeat(9_000));
    let output = sandbox.output(&["run", "large.yaml", "--input", &input]);
    assert!(output.status.success(), "{}", transcript(&output));
    let run = sandbox.newest_run();
    let healthy = sandbox.transcript(&["doctor", "--deep"]);
    assert!(healthy.starts_with("exit 0\n") && healthy.contains("all whole"), "{healthy}");
    let payload = the_payload(&sandbox.path().join("switchyard-data/cas"));
    for damage in [Some("something else"), None] {
        match damage {
            Some(text) => fs::write(&payload, text).unwrap(),
            None => fs::remove_file(&payload).unwrap(),
        }
        let shown = sandbox.json(&["runs", "show", &run, "--json"]);
        assert_eq!((shown["status"].as_str(), shown["output"].as_str()), (Some("succeeded"), Some("done")));
        let paths: Vec<_> =
            shown["missing"].as_array().unwrap().iter().map(|m| m["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["nodes.make.output", "input"], "{shown:#}");
        assert_eq!(shown["nodes"]["make"]["output"], shown["input"]);
        assert_eq!(shown["input"]["bytes"], 9_002, "a reference, and not the content: {shown:#}");
        let text = sandbox.transcript(&["runs", "show", &run]);
        assert!(text.starts_with("exit 0\n") && text.contains("warning: input is missing: "), "{text}");
        let events = sandbox.output(&["runs", "events", &run]);
        assert!(events.status.success());
        let deep = sandbox.transcript(&["doctor", "--deep"]);
        assert!(deep.starts_with("exit 1\n") && deep.contains("1 runs are damaged"), "{deep}");
        assert!(deep.contains(&format!("{run}: ")), "{deep}");
    }
    let mut up = sandbox.up();
    let shown = sandbox.json(&["runs", "show", &run, "--json"]);
    assert_eq!(shown["missing"].as_array().unwrap().len(), 2, "the same through a server: {shown:#}");
    up.wait_for("Ctrl-C stops it");
}

/// The one file in the folder of large payloads.
fn the_payload(cas: &Path) -> PathBuf {
    let shelves = fs::read_dir(cas).unwrap().map(|shelf| shelf.unwrap().path());
    let files: Vec<PathBuf> =
        shelves.flat_map(|shelf| fs::read_dir(shelf).unwrap().map(|file| file.unwrap().path())).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn a_run_with_a_damaged_event_is_named_and_the_others_go_on() {
    let (sandbox, runs) = killed(2);
    // This command exits in order, so that everything is in the database file.
    assert!(sandbox.output(&["run", "hello.yaml", "-i", "name=Bob"]).status.success());
    let file = sandbox.path().join("switchyard-data/switchyard.db");
    let bytes = fs::read(&file).unwrap();
    let wanted = b"Hello, Ada 1!";
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).unwrap();
    flip(&file, at);
    let shown = sandbox.transcript(&["runs", "show", &runs[1]]);
    assert!(shown.starts_with("exit 3\n") && shown.contains("does not match its checksum"), "{shown}");
    assert_eq!(sandbox.json(&["runs", "show", &runs[0], "--json"])["status"], "succeeded");
    let deep = sandbox.transcript(&["doctor", "--deep"]);
    assert!(deep.starts_with("exit 1\n") && deep.contains(&format!("{}: event ", runs[1])), "{deep}");
    assert!(!deep.contains(&runs[0]), "{deep}");
    let salvaged = sandbox.transcript(&["doctor", "--salvage", "new"]);
    assert!(salvaged.contains("kept      2 whole histories"), "{salvaged}");
    assert!(salvaged.contains(&format!("left out  {}: event ", runs[1])), "{salvaged}");
}

#[test]
fn damage_in_postgres_is_named() {
    let (sandbox, redis, postgres) =
        (Sandbox::with(&[("hello.yaml", HELLO)]), Redis::start(), postgres::shared());
    let url = format!("{}?schema={}", postgres.url(), postgres::fresh_schema());
    let stores = ["--redis", &redis.url(), "--postgres", &url];
    let mut up = sandbox.spawn(&[&["up", "--listen", "127.0.0.1:0"], &stores[..]].concat());
    let line = up.wait_for("http://");
    let server = format!("http://{}", line.split_once("http://").unwrap().1.split('/').next().unwrap());
    let submit = || {
        let run = sandbox.json(&["run", "hello.yaml", "--json", "-i", "name=Ada", "--server", &server]);
        run["run_id"].as_str().unwrap().to_owned()
    };
    let (whole, damaged) = (submit(), submit());
    let doctor = [&["doctor", "--deep"], &stores[..]].concat();
    let healthy = sandbox.transcript(&doctor);
    assert!(healthy.contains("histories") && healthy.contains("all whole"), "{healthy}");
    let sql = format!("UPDATE events SET body = replace(body, 'Ada', 'Eve') WHERE run = '{damaged}'");
    psql(&url, &sql);
    let deep = sandbox.transcript(&doctor);
    assert!(deep.starts_with("exit 1\n") && deep.contains(&format!("{damaged}: event 1 of")), "{deep}");
    assert!(!deep.contains(&whole), "{deep}");
    let shown = sandbox.transcript(&["runs", "show", &damaged, "--server", &server]);
    assert!(shown.starts_with("exit 3\n"), "{shown}");
}

/// Executes SQL on the Postgres server, bypassing the archive.
fn psql(url: &str, sql: &str) {
    let (base, schema) = url.split_once("?schema=").unwrap();
    let sql = format!("SET search_path = {schema}; {sql}");
    let output = Command::new("psql").args([base, "-v", "ON_ERROR_STOP=1", "-c", &sql]).output().unwrap();
    assert!(output.status.success(), "{}", transcript(&output));
}
