//! `switchyard keys …`, and a server that requires keys.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::harness::{Running, Sandbox, assert_transcript, transcript};

/// Sends a request with a key, and returns the status line.
fn ask(port: &str, key: &str) -> String {
    ask_as("switchyard.example", port, key)
}

/// Like [`ask`], with another `Host` header.
fn ask_as(host: &str, port: &str, key: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let authorization =
        if key.is_empty() { String::new() } else { format!("authorization: Bearer {key}\r\n") };
    write!(stream, "GET /v1/runs HTTP/1.1\r\nhost: {host}\r\n{authorization}connection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

fn port(up: &mut Running) -> String {
    let line = up.wait_for("http://");
    let rest = line.split_once("http://").unwrap().1;
    rest.split('/').next().unwrap().rsplit(':').next().unwrap().to_owned()
}

#[test]
fn keys_are_made_listed_and_revoked() {
    let sandbox = Sandbox::new();
    let made = sandbox.json(&["keys", "create", "ci", "--json"]);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with(&format!("swk_{id}_")) && key.len() == 4 + 16 + 1 + 64, "{key}");
    let plain = sandbox.output(&["keys", "create", "laptop"]);
    assert!(String::from_utf8_lossy(&plain.stdout).starts_with("swk_"));
    let listed = sandbox.json(&["keys", "list", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert!(!listed.to_string().contains(key.rsplit('_').next().unwrap()));
    let hide = |text: String| text.replace(id, "[KEY]");
    assert_transcript!(hide(sandbox.transcript(&["keys", "revoke", id])), @r"
        exit 0
        --- stdout
        --- stderr
        [KEY]: revoked
    ");
    assert_transcript!(hide(sandbox.transcript(&["keys", "revoke", id])), @r"
        exit 0
        --- stdout
        --- stderr
        [KEY]: was revoked before
    ");
    assert_transcript!(sandbox.transcript(&["keys", "revoke", "nobody"]), @r"
        exit 2
        --- stdout
        --- stderr
        error: there is no api key `nobody`
    ");
    // No file in the folder contains the secret.
    let secret = key.rsplit('_').next().unwrap().as_bytes();
    for entry in std::fs::read_dir(sandbox.path().join("switchyard-data")).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{:?}", entry.path());
    }
}

#[test]
fn looking_for_keys_makes_no_folder() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.output(&["keys", "list"]).status.code(), Some(3));
    assert!(!sandbox.path().join("switchyard-data").exists());
}

#[test]
fn a_server_that_others_can_reach_needs_a_key_and_takes_new_ones_at_once() {
    let sandbox = Sandbox::new();
    let first = sandbox.json(&["keys", "create", "first", "--json"])["key"].as_str().unwrap().to_owned();
    let mut up = sandbox.spawn(&["up", "--listen", "0.0.0.0:0", "-vv"]);
    let port = port(&mut up);
    assert_eq!(ask(&port, ""), "HTTP/1.1 401 Unauthorized");
    assert_eq!(ask(&port, &first), "HTTP/1.1 200 OK");
    let second = sandbox.json(&["keys", "create", "second", "--json"])["key"].as_str().unwrap().to_owned();
    assert_eq!(ask(&port, &second), "HTTP/1.1 200 OK");
    up.interrupt();
    let (code, said) = up.ends();
    assert_eq!(code, Some(0), "{said}");
    for key in [&first, &second] {
        assert!(!said.contains(key.rsplit('_').next().unwrap()), "a key is in the log:\n{said}");
    }
}

#[test]
fn no_auth_is_for_loopback_addresses() {
    let sandbox = Sandbox::new();
    sandbox.output(&["keys", "create", "first"]);
    let refused = sandbox.output(&["up", "--listen", "0.0.0.0:0", "--no-auth"]);
    assert_eq!(refused.status.code(), Some(2));
    let mut up = sandbox.spawn(&["up", "--listen", "127.0.0.1:0", "--no-auth"]);
    let port = port(&mut up);
    // Without keys, the server checks the `Host` header again.
    assert_eq!(ask(&port, ""), "HTTP/1.1 403 Forbidden");
}

#[test]
fn keys_are_made_at_the_server_that_is_named_and_nowhere_else() {
    let (sandbox, elsewhere) = (Sandbox::new(), Sandbox::new());
    let mut up = sandbox.spawn(&["up", "--listen", "127.0.0.1:0"]);
    let port = port(&mut up);
    let address = format!("http://127.0.0.1:{port}");
    let made = elsewhere.json(&["keys", "create", "ci", "--json", "--server", &address]);
    assert!(!elsewhere.path().join("switchyard-data").exists(), "it made a key in a folder of its own");
    assert_eq!(ask_as("127.0.0.1", &port, ""), "HTTP/1.1 401 Unauthorized");
    let key = made["key"].as_str().unwrap();
    assert_eq!(ask(&port, key), "HTTP/1.1 200 OK");
    let with_key = |args: &[&str]| {
        let mut command = elsewhere.command(args);
        command.args(["--server", &address]).env("SWITCHYARD_API_KEY", key);
        transcript(&command.output().unwrap())
    };
    let hide = |text: String| text.replace(made["id"].as_str().unwrap(), "[KEY]");
    assert_transcript!(hide(with_key(&["keys", "list"])), @r#"
    exit 0
    --- stdout
    KEY  NAME  CREATED  REVOKED
    [KEY]  ci  [TIME]  -
    --- stderr
    "#);
    assert_transcript!(hide(with_key(&["keys", "revoke", made["id"].as_str().unwrap()])), @r#"
    exit 0
    --- stdout
    --- stderr
    [KEY]: revoked
    hint: no key is left: the API refuses every request until you make one (`--server none`, or `up --no-auth`)
    "#);
    assert_eq!(ask(&port, key), "HTTP/1.1 401 Unauthorized");
}

#[test]
fn a_server_that_is_named_and_not_there_is_not_exchanged_for_a_folder() {
    let sandbox = Sandbox::new();
    let said = sandbox.transcript(&["keys", "create", "ci", "--server", "http://127.0.0.1:1"]);
    assert_transcript!(said, @r#"
    exit 3
    --- stdout
    --- stderr
    error: no server answers at http://127.0.0.1:1
    hint: start one with `switchyard up`, or say --server none
    "#);
    assert!(!sandbox.path().join("switchyard-data").exists());
}

/// Covers the first key, and an operator who has lost every key.
#[test]
fn a_key_that_is_made_in_the_folder_itself_counts_when_the_command_returns() {
    let sandbox = Sandbox::new();
    let mut up = sandbox.spawn(&["up", "--listen", "127.0.0.1:0"]);
    let port = port(&mut up);
    assert_eq!(ask_as("127.0.0.1", &port, ""), "HTTP/1.1 200 OK");
    let first = sandbox.json(&["keys", "create", "first", "--json", "--server", "none"]);
    assert_eq!(ask_as("127.0.0.1", &port, ""), "HTTP/1.1 401 Unauthorized");
    sandbox.output(&["keys", "revoke", first["id"].as_str().unwrap(), "--server", "none"]);
    let second = sandbox.json(&["keys", "create", "second", "--json", "--server", "none"]);
    assert_eq!(ask(&port, second["key"].as_str().unwrap()), "HTTP/1.1 200 OK");
}
