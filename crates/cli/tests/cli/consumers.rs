//! `consumers`, and how a worker on a shared Redis joins and leaves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;
use switchyard_test_servers::redis::Redis;

use crate::harness::{Running, Sandbox, assert_transcript};

const SLOW: &str = r#"
name: slow
nodes:
  fetch: {type: http, request: {method: GET, url: "${{ input.url }}"}}
"#;

/// A server that never answers, and its address.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    (listener, address)
}

struct Shared {
    sandbox: Sandbox,
    redis: Redis,
}

impl Shared {
    fn start() -> Self {
        Self { sandbox: Sandbox::with(&[("slow.yaml", SLOW)]), redis: Redis::start() }
    }

    fn up(&self, environment: &[(&str, &str)]) -> (Running, String) {
        let url = self.redis.url();
        let args = ["up", "-v", "--listen", "127.0.0.1:0", "--redis", &url];
        let mut up = self.sandbox.spawn_with(&args, environment);
        let line = up.wait_for("http://");
        let address = line.split_once("http://").unwrap().1.split('/').next().unwrap();
        (up, format!("http://{address}"))
    }

    fn consumers(&self, more: &[&str]) -> String {
        let url = self.redis.url();
        let args = [&["consumers"], more, &["--redis", &url]].concat();
        self.sandbox.transcript(&args)
    }

    fn query(&self, words: &[&str]) -> redis::Value {
        let mut connection = redis::Client::open(self.redis.url()).unwrap().get_connection().unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query(&mut connection).unwrap()
    }
}

/// Answers one request, and returns its request line.
fn answer_once(listener: &TcpListener, answer: &str) -> String {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut asked = String::new();
    reader.read_line(&mut asked).unwrap();
    let mut header = String::new();
    while reader.read_line(&mut header).unwrap() > 2 {
        header.clear();
    }
    write!(reader.get_mut(), "{answer}").unwrap();
    asked
}

#[test]
fn a_worker_reports_hands_back_leaves_and_tells_its_sidecar() {
    let shared = Shared::start();
    let (upstream, url) = silent_server();
    let (envoy, quit) = silent_server();
    let quit = format!("{quit}/quitquitquit");
    let (mut up, server) = shared.up(&[
        ("WORKER_POD_NAME", "pod-7"),
        ("SWITCHYARD_WORKER_GRACE", "0s"),
        ("SWITCHYARD_ENVOY_QUIT_URL", &quit),
    ]);
    let input = format!("url={url}");
    let submit = ["run", "slow.yaml", "-i", &input, "--detach", "--server", &server];
    let submitted = shared.sandbox.transcript(&submit);
    assert!(submitted.starts_with("exit 0"), "{submitted}");
    let (_held, _) = upstream.accept().unwrap();

    let listed = shared.consumers(&["--json"]);
    let listed: serde_json::Value = serde_json::from_str(listed.lines().nth(2).unwrap()).unwrap();
    let consumer = &listed["consumers"][0];
    assert_eq!((&consumer["name"], &consumer["standing"]), (&"pod-7".into(), &"alive".into()));
    assert_eq!((&consumer["queue"], &consumer["pending"]), (&"http".into(), &1.into()));
    assert_eq!(listed["workers"][0]["slots"], 64);

    up.send(Signal::TERM);
    for line in ["no further task is claimed", "handed back", "left the group"] {
        up.wait_for(line);
    }
    let asked = answer_once(&envoy, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    assert_eq!(asked.trim_end(), "POST /quitquitquit HTTP/1.1");
    assert_eq!(up.ends().0, Some(0));
    let members = shared.query(&["XINFO", "CONSUMERS", "wf.tasks.http", "workers"]);
    assert_eq!(members, redis::Value::Array(Vec::new()));
    // The task was handed back to the stream.
    assert_eq!(shared.query(&["XLEN", "wf.tasks.http"]), redis::Value::Int(1));
    assert_eq!(shared.query(&["ZCARD", "wf.workers"]), redis::Value::Int(0));
}

#[test]
fn a_sidecar_that_does_not_answer_is_a_warning() {
    let shared = Shared::start();
    let (up, _) = shared.up(&[("SWITCHYARD_ENVOY_QUIT_URL", "http://127.0.0.1:1/quitquitquit")]);
    up.send(Signal::TERM);
    let (code, said) = up.ends();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("warning: the sidecar at http://127.0.0.1:1/quitquitquit could not be told"),
        "{said}"
    );
}

#[test]
fn a_killed_worker_is_a_ghost_that_can_be_cleaned_up() {
    let shared = Shared::start();
    let (upstream, url) = silent_server();
    let (up, server) = shared.up(&[("WORKER_POD_NAME", "pod-1"), ("SWITCHYARD_WORKER_LEASE", "1s")]);
    let input = format!("url={url}");
    shared.sandbox.transcript(&["run", "slow.yaml", "-i", &input, "--detach", "--server", &server]);
    let (_held, _) = upstream.accept().unwrap();
    up.send(Signal::KILL);
    up.ends();
    // A report is valid for a second. Instead of waiting, the test deletes it.
    shared.query(&["DEL", "wf.workers"]);

    assert_transcript!(shared.consumers(&[]), @r#"
        exit 0
        --- stdout
        CONSUMER  QUEUE  PRIORITY  PENDING  LONG  IDLE  STANDING  BUSY  HOST
        pod-1  http  normal  1  0  [TOOK]  unknown  -  -
        --- stderr
    "#);
    let cleanup = |more: &[&str]| {
        let url = shared.redis.url();
        let mut command =
            shared.sandbox.command(&[&["consumers", "cleanup"], more, &["--redis", &url]].concat());
        crate::harness::transcript(&command.env("IDLE_THRESHOLD_SECONDS", "0").output().unwrap())
    };
    assert_transcript!(cleanup(&["--dry-run"]), @r#"
        exit 0
        --- stdout
        GHOST  QUEUE  PRIORITY  PENDING  RETURNED  CLAIMED  VOID  RESULT
        pod-1  http  normal  1  0  0  0  would go
        --- stderr
        1 of 1 consumers are ghosts; nothing was changed
    "#);
    assert_transcript!(cleanup(&[]), @r#"
        exit 0
        --- stdout
        GHOST  QUEUE  PRIORITY  PENDING  RETURNED  CLAIMED  VOID  RESULT
        pod-1  http  normal  1  0  0  0  stays: holds 1
        --- stderr
        1 of 1 consumers are ghosts; 0 are gone
    "#);
    // Register a live worker that can take over the entry.
    shared.query(&["ZADD", "wf.workers", "9999999999999", "pod-2"]);
    assert_transcript!(cleanup(&[]), @r#"
        exit 0
        --- stdout
        GHOST  QUEUE  PRIORITY  PENDING  RETURNED  CLAIMED  VOID  RESULT
        pod-1  http  normal  1  0  1  0  gone
        --- stderr
        1 of 1 consumers are ghosts; 1 are gone
    "#);
    assert_eq!(shared.query(&["XLEN", "wf.tasks.http"]), redis::Value::Int(1));
}

/// Redis knows a consumer that never reports; Kubernetes knows its pod.
#[cfg(feature = "kubernetes")]
#[test]
fn a_consumer_whose_pod_is_there_is_alive() {
    let shared = Shared::start();
    shared.query(&["SADD", "wf.streams", "wf.tasks.http"]);
    shared.query(&["XGROUP", "CREATE", "wf.tasks.http", "workers", "0", "MKSTREAM"]);
    for pod in ["pod-1", "pod-2"] {
        shared.query(&["XGROUP", "CREATECONSUMER", "wf.tasks.http", "workers", pod]);
    }
    let (kubernetes, server) = silent_server();
    shared.sandbox.file(
        "kubeconfig",
        &format!(
            "{{apiVersion: v1, kind: Config, current-context: c, users: [{{name: u, user: {{}}}}], clusters: [{{name: c, \
             cluster: {{server: '{server}'}}}}], contexts: [{{name: c, context: {{cluster: c, user: u, namespace: \
             yard}}}}]}}"
        ),
    );
    let url = shared.redis.url();
    let mut command = shared.sandbox.command(&["consumers", "--json", "--redis", &url]);
    command.env("KUBECONFIG", "kubeconfig").env("SWITCHYARD_POD_SELECTOR", "app=worker");
    command.env("IDLE_THRESHOLD_SECONDS", "0");
    let listing = std::thread::spawn(move || command.output().unwrap());
    let pods =
        r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"pod-1"}}]}"#;
    let asked = answer_once(
        &kubernetes,
        &format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{pods}",
            pods.len()
        ),
    );
    assert!(asked.starts_with("GET /api/v1/namespaces/yard/pods?"), "{asked}");
    assert!(asked.contains("labelSelector=app%3Dworker"), "{asked}");
    let output = listing.join().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let standing = |at: usize| (&listed["consumers"][at]["name"], &listed["consumers"][at]["standing"]);
    assert_eq!(standing(0), (&"pod-1".into(), &"alive".into()));
    assert_eq!(standing(1), (&"pod-2".into(), &"ghost".into()));
}

#[test]
fn a_submission_while_redis_is_away_is_refused_and_says_when_to_come_back() {
    let mut shared = Shared::start();
    let retries = [("REDIS_SEND_MESSAGE_MAX_RETRIES", "1"), ("REDIS_SEND_MESSAGE_RETRY_DELAY", "0")];
    let (_up, server) = shared.up(&retries);
    shared.redis.stop();
    let body = r#"{"workflow": {"name": "w", "nodes": {"a": {"type": "transform", "value": 1}}}}"#;
    let mut stream = TcpStream::connect(server.strip_prefix("http://").unwrap()).unwrap();
    write!(
        stream,
        "POST /v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.to_lowercase().contains("retry-after: "), "{answer}");
}

#[test]
fn there_must_be_a_redis() {
    let sandbox = Sandbox::new();
    assert_transcript!(sandbox.transcript(&["consumers"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no Redis to look into
        hint: name it with --redis URL or REDIS_URL; `switchyard up` without one has no consumers
    "#);
}
