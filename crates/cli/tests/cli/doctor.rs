//! `doctor` and `inspect`: checks of the stores, and the keys of a run.

use std::process::Command;

use serde_json::Value;
use switchyard_test_servers::postgres::{Postgres, Sync};
use switchyard_test_servers::redis::Redis;

use crate::harness::{GATE, HELLO, Sandbox, assert_transcript, transcript};

fn health<'a>(document: &'a Value, name: &str) -> &'a str {
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name} in {document:#}"))["health"].as_str().unwrap()
}

fn document(command: &mut Command) -> (Option<i32>, Value) {
    let output = command.output().unwrap();
    let read = serde_json::from_slice(&output.stdout);
    (output.status.code(), read.unwrap_or_else(|_| panic!("{}", transcript(&output))))
}

fn query(redis: &Redis, words: &[&str]) -> redis::Value {
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    redis::cmd(words[0]).arg(&words[1..]).query(&mut connection).unwrap()
}

#[test]
fn a_folder_is_examined_without_being_made() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let (code, found) = document(&mut sandbox.command(&["doctor", "--json"]));
    assert_eq!((code, health(&found, "folder")), (Some(0), "warning"));
    assert!(!sandbox.path().join("switchyard-data").exists());
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    let (code, found) = document(&mut sandbox.command(&["doctor", "--json"]));
    assert_eq!(code, Some(0));
    for name in ["folder lock", "archive", "disk space", "disk sync"] {
        assert_ne!(health(&found, name), "failed", "{found:#}");
    }
    assert_eq!(health(&found, "archive"), "ok");
}

#[test]
fn a_damaged_archive_fails() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    let file = sandbox.path().join("switchyard-data/switchyard.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // Overwrite everything after the first page, which identifies the file.
    bytes[4_096..].fill(0xa5);
    std::fs::write(&file, bytes).unwrap();
    let shown = sandbox.transcript(&["doctor"]);
    assert!(shown.starts_with("exit 1\n"), "{shown}");
    assert!(shown.contains("failed   archive"), "{shown}");
    assert!(shown.contains("restore the folder from a backup"), "{shown}");
}

#[test]
fn a_folder_of_a_newer_release_gets_one_piece_of_advice() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    let file = sandbox.path().join("switchyard-data/switchyard.db");
    // The schema version is in the header of the file.
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    std::fs::write(&file, bytes).unwrap();
    let shown = sandbox.transcript(&["doctor"]);
    assert!(shown.contains("99") && shown.contains("use a newer switchyard"), "{shown}");
    assert!(!shown.contains("backup") && !shown.contains("--salvage"), "{shown}");
}

#[test]
fn redis_is_examined_and_what_is_wrong_is_said() {
    let (sandbox, redis) = (Sandbox::new(), Redis::start());
    let url = redis.url();
    let doctor = ["doctor", "--json", "--redis", &url];
    let (code, found) = document(&mut sandbox.command(&doctor));
    assert_eq!(code, Some(0), "{found:#}");
    for name in
        ["version", "role", "eviction", "memory", "append-only file", "clock", "scripts", "rights", "outbox"]
    {
        assert_eq!(health(&found, &format!("redis {name}")), "ok", "{found:#}");
    }
    assert_eq!(health(&found, "redis group"), "warning", "no worker");
    assert_eq!(query(&redis, &["DBSIZE"]), redis::Value::Int(0), "what it tried is gone");

    for config in [["maxmemory", "100mb"], ["maxmemory-policy", "allkeys-lru"], ["appendonly", "no"]] {
        query(&redis, &["CONFIG", "SET", config[0], config[1]]);
    }
    let (code, found) = document(&mut sandbox.command(&doctor));
    assert_eq!((code, health(&found, "redis eviction")), (Some(1), "failed"));
    assert_eq!(health(&found, "redis append-only file"), "warning");

    query(&redis, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    query(&redis, &["ACL", "SETUSER", "poor", "on", ">hush", "~*", "&*", "+@all", "-xclaim"]);
    let socket = redis.socket().display().to_string();
    let poor = format!("redis+unix://{socket}?user=poor&pass=hush");
    let (code, found) = document(&mut sandbox.command(&["doctor", "--json", "--redis", &poor]));
    assert_eq!((code, health(&found, "redis rights")), (Some(1), "failed"), "{found:#}");
    assert!(found.to_string().contains("XCLAIM"), "{found:#}");
}

#[test]
fn a_redis_that_is_not_there_fails() {
    let sandbox = Sandbox::new();
    let (code, found) =
        document(&mut sandbox.command(&["doctor", "--json", "--redis", "redis://127.0.0.1:1"]));
    assert_eq!((code, health(&found, "redis")), (Some(1), "failed"));
}

#[test]
fn postgres_is_examined_and_what_is_wrong_is_said() {
    let (sandbox, redis, mut postgres) = (Sandbox::new(), Redis::start(), Postgres::start(Sync::On));
    let stores = ["--redis".to_owned(), redis.url(), "--postgres".to_owned(), postgres.url()];
    let examined = |command: &[&str]| {
        let words: Vec<&str> = command.iter().copied().chain(stores.iter().map(String::as_str)).collect();
        document(&mut sandbox.command(&words))
    };
    let doctor = ["doctor", "--json"];
    let (code, found) = examined(&doctor);
    assert_eq!((code, health(&found, "postgres")), (Some(0), "ok"), "{found:#}");
    assert_eq!(health(&found, "postgres schema"), "warning", "it does not exist");
    assert!(found.to_string().contains("there is no schema `switchyard`"), "{found:#}");

    assert!(sandbox.output(&["migrate", "--postgres", &postgres.url()]).status.success());
    let (code, found) = examined(&doctor);
    assert_eq!((code, health(&found, "postgres schema")), (Some(0), "ok"), "{found:#}");
    assert_eq!(health(&found, "redis version"), "ok", "both are looked at");

    postgres.stop();
    let (code, found) = examined(&doctor);
    assert_eq!((code, health(&found, "postgres")), (Some(1), "failed"), "{found:#}");
    assert!(found.to_string().contains("cannot connect to Postgres at"), "{found:#}");
    assert!(!sandbox.path().join("switchyard-data").exists(), "history is not there");
}

#[test]
fn a_postgres_that_can_forget_fails() {
    let (sandbox, postgres) = (Sandbox::new(), Postgres::start(Sync::Off));
    let shown = sandbox.transcript(&["doctor", "--postgres", &postgres.url()]);
    assert!(shown.starts_with("exit 1\n"), "{shown}");
    assert!(shown.contains("fsync off, synchronous_commit off"), "{shown}");
    assert!(shown.contains("ALTER SYSTEM SET fsync = on"), "{shown}");
}

#[test]
fn every_key_of_a_run_is_shown() {
    let (sandbox, redis) = (Sandbox::with(&[("gate.yaml", GATE)]), Redis::start());
    let url = redis.url();
    let mut up = sandbox.spawn(&["up", "--listen", "127.0.0.1:0", "--redis", &url]);
    let line = up.wait_for("http://");
    let server = format!("http://{}", line.split_once("http://").unwrap().1.split('/').next().unwrap());
    let mut waiting = sandbox.spawn(&["run", "gate.yaml", "--server", &server, "--idempotency-key", "once"]);
    waiting.wait_for("waits for signal");
    let runs = sandbox.json(&["runs", "list", "--json", "--server", &server]);
    let run = runs["runs"][0]["run_id"].as_str().unwrap();

    let shown = sandbox.json(&["inspect", run, "--json", "--redis", &url]);
    let key = |name: &str| {
        let keys = shown["keys"].as_array().unwrap();
        let found = keys.iter().find(|key| key["key"].as_str().unwrap().starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in {shown:#}"))["value"].clone()
    };
    assert_eq!(key(&format!("run:{run}"))["phase"], "running");
    assert_eq!(key("dag:")["before"]["state"], "succeeded");
    assert_eq!(key("dag:")["gate"]["state"], "waiting");
    assert_eq!(key("context:")["before:output"]["json"], 1);
    assert_eq!(key("ir:")["name"], "gate");
    assert_eq!(key("wf.runs")[run], true);
    assert_eq!(key("idempotency:")["run"], run);
    let text = sandbox.transcript(&["inspect", run, "--redis", &url]);
    assert!(text.contains(&format!("run:{run} (hash)\n")), "{text}");

    let searched = query(&redis, &["INFO", "commandstats"]);
    let searched = format!("{searched:?}");
    assert!(!searched.contains("cmdstat_keys:") && !searched.contains("cmdstat_scan:"), "{searched}");
}

#[test]
fn a_folder_shows_what_a_history_folds_to() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let run = sandbox.interrupted_at_gate();
    let shown = sandbox.json(&["inspect", &run, "--json"]);
    assert_eq!(shown["state"]["node gate"]["state"], "waiting");
    assert_eq!(shown["record"]["status"], "running");
    assert_transcript!(sandbox.transcript(&["inspect", "run_00000000000000000000000000"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no run [RUN]
        hint: `switchyard runs list` shows the runs
    "#);
}
