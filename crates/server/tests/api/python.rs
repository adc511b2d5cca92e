//! `examples/worker.py` against a real server.

use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::harness::TestServer;

struct Worker(Child);

impl Worker {
    fn start(server: &TestServer) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/worker.py");
        let mut command = Command::new("python3");
        command.arg(script).env("SWITCHYARD_URL", server.url("")).env("NO_PROXY", "127.0.0.1");
        Self(command.stdin(Stdio::null()).spawn().expect("python3 is needed for this test"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_python_worker_carries_runs_to_their_ends() {
    let server = TestServer::start().await;
    let _worker = Worker::start(&server);
    let call = |function: &str, input: serde_json::Value| json!({ "name": "py", "nodes": { "call": { "type": "function", "function": function, "input": input } } });
    let greet =
        server.submit(call("greet", json!({ "name": "${{ input.name }}" })), json!({ "name": "Ada" })).await;
    assert_eq!(server.end(&greet).await["output"], json!({ "greeting": "Hello, Ada!" }));
    let add = server.submit(call("add", json!({ "numbers": [1, 2, 3] })), json!(null)).await;
    assert_eq!(server.end(&add).await["output"], 6);
    let absent = server.submit(call("nope", json!({})), json!(null)).await;
    for (function, input, code) in
        [("greet", json!({ "name": 5 }), "refused"), ("greet", json!({}), "KeyError")]
    {
        let failed = server.submit(call(function, input), json!(null)).await;
        assert_eq!(server.end(&failed).await["error"]["code"], code);
    }
    let state = server.get(&format!("/v1/runs/{absent}")).await.expect(200);
    assert_eq!(state["nodes"]["call"]["status"], "ready", "it is left to a worker that has it");
}

#[tokio::test]
async fn the_python_worker_releases_what_it_holds_when_it_is_told_to_end() {
    let server = TestServer::start().await;
    let mut worker = Worker::start(&server);
    let nap = json!({ "type": "function", "function": "nap", "input": { "seconds": 3600 } });
    let run = server.submit(json!({ "name": "py", "nodes": { "call": nap } }), json!(null)).await;
    server.until(&run, "node_started").await;
    let pid = rustix::process::Pid::from_child(&worker.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    server.until(&run, "node_released").await;
    let ended = tokio::task::spawn_blocking(move || worker.0.wait().expect("it ends")).await.unwrap();
    assert!(ended.success(), "{ended}");
}
