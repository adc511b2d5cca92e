//! `up`: serving, and stopping in order.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::harness::{GATE, HELLO, Running, Sandbox, assert_transcript};

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

/// The address that `up` prints.
fn address(up: &mut Running) -> String {
    let line = up.wait_for("http://");
    let rest = line.split_once("http://").unwrap().1;
    rest.split('/').next().unwrap().to_owned()
}

/// Sends a request and leaves the connection open.
fn send(address: &str, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    BufReader::new(stream)
}

fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut answer = String::new();
    send(address, method, path, body).read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_serves_and_stops_in_order() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE), ("hello.yaml", HELLO)]);
    sandbox.json(&["workflows", "register", "gate.yaml", "--json"]);
    for signal in [Signal::INT, Signal::TERM] {
        let mut up = sandbox.spawn(&UP);
        let address = address(&mut up);
        assert!(ask(&address, "GET", "/readyz", "").starts_with("HTTP/1.1 200"));
        assert!(ask(&address, "POST", "/v1/runs", r#"{"workflow": "gate"}"#).starts_with("HTTP/1.1 202"));
        let run = sandbox.newest_run();
        // One client follows a run, another waits for work.
        let mut follower = send(&address, "GET", &format!("/v1/runs/{run}/events"), "");
        let mut line = String::new();
        while !line.contains("node_waiting") {
            line.clear();
            assert!(follower.read_line(&mut line).unwrap() > 0);
        }
        let mut worker = send(&address, "POST", "/v1/tasks/claim", r#"{"worker": "w", "wait": "60s"}"#);
        up.send(signal);
        let (mut rest, mut claimed) = (String::new(), String::new());
        follower.read_to_string(&mut rest).unwrap();
        // The server closes connections whose request it has not read yet when it stops: the worker gets no task.
        let _ = worker.read_to_string(&mut claimed);
        assert!(claimed.is_empty() || claimed.contains(r#"{"tasks":[]}"#), "{claimed}");
        let (code, said) = up.ends();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("stopping"), "{said}");
    }
    // Both runs wait for their signals; the folder is free.
    let listed = sandbox.json(&["runs", "list", "--status", "running", "--json"]);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2);
    assert!(sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]).status.success());
}

#[test]
fn it_takes_up_what_was_there() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let run = sandbox.interrupted_at_gate();
    let mut up = sandbox.spawn(&UP);
    up.wait_for("took up 1 unfinished run");
    let address = address(&mut up);
    let path = format!("/v1/runs/{run}/signals/go");
    assert!(ask(&address, "POST", &path, r#"{"payload": 5}"#).starts_with("HTTP/1.1 200"));
    // The stream ends with the run.
    let events = ask(&address, "GET", &format!("/v1/runs/{run}/events"), "");
    assert!(events.contains("event: run_ended"), "{events}");
    up.interrupt();
    assert_eq!(up.ends().0, Some(0));
    assert_eq!(sandbox.json(&["runs", "show", &run, "--json"])["output"], serde_json::json!({ "went": 5 }));
}

#[test]
fn it_refuses_an_address_that_strangers_can_reach() {
    let sandbox = Sandbox::new();
    assert_transcript!(sandbox.transcript(&["up", "--listen", "0.0.0.0:0"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: 0.0.0.0:0 can be reached from other machines, and there is no API key
        hint: make one first: switchyard keys create NAME
        hint: there is no TLS: let a proxy that has it stand before it
    "#);
    assert!(!sandbox.path().join("switchyard-data").exists());
}

#[test]
fn it_goes_by_the_limits_that_are_set() {
    let sandbox = Sandbox::with(&[("switchyard.toml", "[http]\nbody_max = \"1KiB\"\n")]);
    let mut up = sandbox.spawn(&UP);
    let address = address(&mut up);
    let body = format!(r#"{{"workflow": "{}"}}"#, "x".repeat(2_000));
    let answer = ask(&address, "POST", "/v1/runs", &body);
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("more than the 1024 bytes"), "{answer}");
}

#[test]
fn an_address_in_use_is_told_before_the_folder_is_touched() {
    let sandbox = Sandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let output = sandbox.output(&["up", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot listen on"));
    assert!(!sandbox.path().join("switchyard-data").exists());
}

#[test]
fn it_is_measured_by_bench_http() {
    let sandbox = Sandbox::new();
    let mut up = sandbox.spawn(&UP);
    let url = format!("http://{}", address(&mut up));
    let sizes =
        ["--http-requests", "64", "--repeat", "1", "--warmup", "0", "--store", "embedded:bench", "--json"];
    let report = sandbox.json(&[&["bench", "http", "--http-url", &url][..], &sizes].concat());
    for figure in ["c01_healthz_per_s", "c16_runs_per_s", "c64_run_p99_ms"] {
        assert!(report["workloads"]["http"][figure].as_f64().unwrap() > 0.0, "{report}");
    }
    let unknown =
        sandbox.output(&["bench", "http", "--http-url", "http://127.0.0.1:1", "--store", "embedded:bench"]);
    assert_eq!(unknown.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no server answers at http://127.0.0.1:1"));
}

#[test]
fn it_lets_go_of_what_is_not_kept() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    for _ in 0..3 {
        assert!(sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]).status.success());
    }
    let newest = sandbox.newest_run();
    sandbox.file("switchyard.toml", "[retention]\nkeep_runs = 1\n");
    let up = sandbox.up();
    let kept = || sandbox.json(&["runs", "list", "--json"])["runs"].as_array().unwrap().len();
    let by = std::time::Instant::now() + crate::harness::PATIENCE;
    while kept() > 1 {
        assert!(std::time::Instant::now() < by, "there are still {} runs", kept());
    }
    assert_eq!(sandbox.newest_run(), newest);
    up.interrupt();
    assert_eq!(up.ends().0, Some(0));
}

#[test]
fn payloads_elsewhere_are_for_processes_that_share() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&UP).env("SWITCHYARD_CAS", "s3://bucket").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cas.url is for processes that share a Redis"), "{stderr}");
}
