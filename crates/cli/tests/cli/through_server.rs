//! Which commands go through a server, and their messages about it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use crate::harness::{GATE, HELLO, Running, Sandbox, assert_transcript, transcript};

/// An address where no server listens.
const NO_SERVER: &str = "http://127.0.0.1:1";

fn served() -> (Sandbox, Running) {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO), ("gate.yaml", GATE)]);
    let up = sandbox.up();
    (sandbox, up)
}

/// The address of the sandbox's server.
fn address(sandbox: &Sandbox) -> String {
    let command = sandbox.command(&[]);
    let set = command.get_envs().find(|(name, _)| *name == "SWITCHYARD_SERVER");
    set.unwrap().1.unwrap().to_str().unwrap().to_owned()
}

fn ran(mut command: Command) -> String {
    transcript(&command.output().unwrap())
}

#[test]
fn ctrl_c_leaves_the_run_to_the_server() {
    let (sandbox, _up) = served();
    let mut running = sandbox.spawn(&["run", "gate.yaml"]);
    running.wait_for("waits for signal");
    running.interrupt();
    let (code, said) = running.ends();
    assert_eq!(code, Some(130));
    assert_transcript!(said, @r#"
    [RUN] of gate
    before started
    before succeeded ([TOOK])
    gate started
    gate waits for signal `go`
    hint: switchyard runs signal [RUN] go
    left: the run goes on in the server
    hint: switchyard runs watch [RUN]
    hint: switchyard runs cancel [RUN]
    "#);
    let run = sandbox.newest_run();
    let mut watching = sandbox.spawn(&["runs", "watch", &run]);
    watching.wait_for("gate waits");
    sandbox.json(&["runs", "signal", &run, "go", "--payload", "1", "--json"]);
    assert_eq!(watching.ends().0, Some(0));
}

#[test]
fn a_run_is_followed_through_a_restart_of_the_server() {
    let sandbox = Sandbox::with(&[("gate.yaml", GATE)]);
    let first = sandbox.up();
    let mut running = sandbox.spawn(&["run", "gate.yaml"]);
    running.wait_for("waits for signal");
    let address = address(&sandbox);
    first.interrupt();
    assert_eq!(first.ends().0, Some(0));
    let mut again = sandbox.spawn(&["up", "--listen", address.trim_start_matches("http://")]);
    again.wait_for("Ctrl-C stops it");
    sandbox.json(&["runs", "signal", &sandbox.newest_run(), "go", "--json"]);
    assert_eq!(running.ends().0, Some(0));
}

#[test]
fn a_folder_that_was_named_is_not_exchanged_for_that_of_a_server() {
    let (sandbox, _up) = served();
    // The same folder: through the server, which has locked the folder.
    let same = sandbox.output(&["run", "hello.yaml", "-i", "name=Ada", "--data", "./switchyard-data"]);
    assert!(same.status.success(), "{}", transcript(&same));
    // Another folder: directly, because the server does not work on it.
    let other = sandbox.output(&["run", "hello.yaml", "-i", "name=Bo", "--data", "other"]);
    assert!(other.status.success(), "{}", transcript(&other));
    let count = |args: &[&str]| sandbox.json(args)["runs"].as_array().unwrap().len();
    assert_eq!(count(&["runs", "list", "--json", "--data", "other"]), 1);
    assert_eq!(count(&["runs", "list", "--json"]), 1);
    // Both named: the server must work on that folder.
    let address = address(&sandbox);
    let both = sandbox.command(&["runs", "list", "--data", "other", "--server", &address]);
    let both = ran(both).replace(&address, "ADDRESS");
    assert_transcript!(both, @r#"
    exit 2
    --- stdout
    --- stderr
    error: the server at ADDRESS does not work on other
    hint: name one of them: the server or the folder
    "#);
}

#[test]
fn a_server_that_was_named_has_to_answer() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    assert_transcript!(sandbox.transcript(&["runs", "list", "--server", NO_SERVER]), @r#"
    exit 3
    --- stdout
    --- stderr
    error: no server answers at http://127.0.0.1:1
    hint: start one with `switchyard up`, or say --server none
    "#);
    let mut by_environment = sandbox.command(&["run", "hello.yaml", "-i", "name=Ada"]);
    by_environment.env("SWITCHYARD_SERVER", NO_SERVER);
    assert!(ran(by_environment).contains("no server answers"));
    assert!(!sandbox.path().join("switchyard-data").exists(), "nothing was made");
    // A folder named by a flag outranks a server named by the environment, which need not answer.
    let mut folder = sandbox.command(&["run", "hello.yaml", "-i", "name=Ada", "--data", "here"]);
    folder.env("SWITCHYARD_SERVER", NO_SERVER);
    assert!(ran(folder).starts_with("exit 0"));
}

#[test]
fn a_server_in_the_settings_file_comes_before_a_folder_that_nobody_named() {
    let (elsewhere, _up) = served();
    let address = address(&elsewhere);
    let here = Sandbox::with(&[("hello.yaml", HELLO)]);
    assert!(here.output(&["run", "hello.yaml", "-i", "name=Ada"]).status.success());
    std::fs::write(here.path().join("switchyard.toml"), format!("server = \"{address}\"\n")).unwrap();
    let mut list = here.command(&["runs", "list"]);
    list.env_remove("SWITCHYARD_SERVER");
    assert_transcript!(ran(list), @r#"
    exit 0
    --- stdout
    --- stderr
    no runs
    "#);
}

#[test]
fn command_nodes_are_the_servers_to_allow() {
    let sandbox =
        Sandbox::with(&[("c.yaml", "name: c\nnodes:\n  c: {type: command, command: [echo, hi]}\n")]);
    let _up = sandbox.up();
    let refused = sandbox.transcript(&["run", "c.yaml", "--allow-commands"]);
    assert!(refused.starts_with("exit 1"), "{refused}");
    assert!(refused.contains("commands_not_allowed") || refused.contains("not allowed"), "{refused}");
}

#[test]
fn a_key_lets_commands_in() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let key = sandbox.output(&["keys", "create", "ci"]);
    let key = String::from_utf8(key.stdout).unwrap().trim().to_owned();
    let _up = sandbox.up();
    let hello = ["run", "hello.yaml", "-i", "name=Ada"];
    assert_transcript!(sandbox.transcript(&hello), @r#"
    exit 2
    --- stdout
    --- stderr
    error: this server wants an API key
    hint: give the key in SWITCHYARD_API_KEY, or as `api_key` in the settings file
    hint: --server none works in the data folder, even if a server answers
    "#);
    let mut with_key = sandbox.command(&hello);
    with_key.env("SWITCHYARD_API_KEY", &key);
    assert!(ran(with_key).starts_with("exit 0"));
    let mut wrong = sandbox.command(&hello);
    wrong.env("SWITCHYARD_API_KEY", "swk_wrong");
    assert!(ran(wrong).contains("this is not a key of this server"));
}

/// A server that answers queries, but never answers changes.
fn half_mute() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            if request[..read].starts_with(b"GET ") {
                let body = r#"{"version": "0", "store": null}"#;
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
            }
        }
    });
    address
}

#[test]
fn a_change_that_was_not_answered_is_told_with_the_id_to_repeat_it() {
    let sandbox = Sandbox::new();
    let address = half_mute();
    let run = "run_00000000000000000000000000";
    let pause = |more: &[&str]| {
        let args = [&["runs", "pause", run, "--server", &address][..], more].concat();
        sandbox.transcript(&args).replace(&address, "[SERVER]")
    };
    assert_transcript!(pause(&[]), @r#"
    exit 3
    --- stdout
    --- stderr
    error: it is not known whether it was done: no server answers at [SERVER]
    hint: repeat the command with --operation-id [OPERATION]: it is done once, however often you do
    "#);
    assert_transcript!(pause(&["--operation-id", "mine"]), @r#"
    exit 3
    --- stdout
    --- stderr
    error: it is not known whether it was done: no server answers at [SERVER]
    hint: repeat the command with --operation-id mine: it is done once, however often you do
    "#);
}

#[test]
fn a_change_that_is_repeated_with_its_id_is_made_once() {
    let (sandbox, _up) = served();
    let run = sandbox.interrupted_at_gate();
    let signal = ["runs", "signal", &run, "other", "--payload", "1", "--operation-id", "mine", "--json"];
    for _ in 0..2 {
        sandbox.json(&signal);
    }
    let events = sandbox.output(&["runs", "events", &run]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    assert_eq!(events.matches("signal_received").count(), 1, "{events}");
    let other =
        sandbox.transcript(&["runs", "signal", &run, "other", "--payload", "2", "--operation-id", "mine"]);
    assert_transcript!(other, @r#"
    exit 1
    --- stdout
    --- stderr
    error: operation id `mine` was used for another request
    "#);
}

/// A worker has claimed the task and never reports again.
#[tokio::test]
async fn a_cancelled_run_waits_for_no_worker_if_it_is_told_so() {
    let sandbox =
        Sandbox::with(&[("work.yaml", "name: work\nnodes:\n  a: { type: function, function: forever }\n")]);
    let _up = sandbox.up();
    sandbox.transcript(&["run", "work.yaml", "--detach"]);
    let http = switchyard_runtime::kinds::http_client().build().unwrap();
    let claim = serde_json::json!({ "worker": "w", "wait": "30s" });
    let claimed =
        http.post(format!("{}/v1/tasks/claim", address(&sandbox))).json(&claim).send().await.unwrap();
    let claimed: serde_json::Value = claimed.json().await.unwrap();
    let run = claimed["tasks"][0]["run_id"].as_str().unwrap();
    assert_transcript!(sandbox.transcript(&["runs", "cancel", run]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: closing
    "#);
    assert_transcript!(sandbox.transcript(&["runs", "cancel", run, "--now"]), @r#"
        exit 0
        --- stdout
        --- stderr
        [RUN]: cancelled
    "#);
}
