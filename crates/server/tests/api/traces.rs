//! Traces: from the caller of a run, through its steps, to the services they call.

use serde_json::{Value, json};

use crate::collector::TestCollector;
use crate::harness::{Answer, TestServer, client, hello};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A workflow with an HTTP call, a worker's task, a wait, a retry, and child runs.
fn everything(echo: &str) -> Value {
    json!({
        "name": "everything",
        "nodes": {
            "call": { "type": "http", "request": { "method": "GET", "url": echo } },
            "work": { "type": "function", "function": "double", "needs": ["call"] },
            "wait": { "type": "wait", "signal": "go", "needs": ["work"] },
            "again": {
                "type": "function", "function": "fail", "needs": ["wait"],
                "input": { "code": "busy", "message": "try later", "until_attempt": 2 },
                "retry": { "max_attempts": 2, "initial": "1ms" },
            },
            "each": {
                "type": "map", "items": "${{ [1] }}", "needs": ["again"],
                "nodes": { "inner": { "type": "transform", "value": 1 } },
            },
        },
        "output": { "headers": "${{ nodes.call.output.body }}" },
    })
}

async fn submit_within(server: &TestServer, workflow: Value, flags: &str) -> String {
    let request = server.client.post(server.url("/v1/runs")).json(&json!({ "workflow": workflow }));
    let request = request.header("traceparent", format!("00-{TRACE}-{CALLER}-{flags}"));
    let answer = Answer::of(request.header("tracestate", "congo=t61rcWkgMzE").send().await.unwrap()).await;
    answer.expect(202)["run_id"].as_str().unwrap().to_owned()
}

/// Claims the task of node `work` and completes it.
async fn work(server: &TestServer) -> Value {
    let claimed = server.post("/v1/tasks/claim", json!({ "worker": "w", "wait": "60s" })).await.expect(200);
    let task = claimed["tasks"][0].clone();
    let done = json!({ "run_id": task["run_id"], "node": "work", "claim": task["claim"], "output": 1 });
    server.post("/v1/tasks/complete", done).await.expect(200);
    task
}

async fn carry_through(server: &TestServer, run: &str) -> (Value, Value) {
    let task = work(server).await;
    server.post(&format!("/v1/runs/{run}/signals/go"), json!({})).await.expect(200);
    let ended = server.end(run).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    server.fixture.services().observe.shut_down().await;
    (task, ended["output"]["headers"].clone())
}

#[tokio::test]
async fn a_run_belongs_to_the_trace_that_it_was_asked_for_in() {
    let collector = TestCollector::start().await;
    let observe = collector.observe(client(), 0.0);
    let server = TestServer::with(|options| options.observe = observe).await;
    let run = submit_within(&server, everything(&format!("http://{}/echo", collector.address)), "01").await;
    let (task, headers) = carry_through(&server, &run).await;

    let whole = collector.span("run everything");
    assert_eq!((whole.parent.as_str(), whole.error), (CALLER, None));
    assert_eq!(whole.attributes["switchyard.outcome"], "succeeded");
    assert_eq!(whole.attributes["switchyard.run"], run);
    assert!(collector.spans().iter().all(|span| span.trace == TRACE), "{:#?}", collector.spans());
    for step in ["step call", "step work", "step wait", "wait wait"] {
        assert_eq!(collector.span(step).parent, whole.id, "{step}");
    }
    // The called service got the trace context of the step.
    let call = collector.span("step call");
    assert_eq!(headers["traceparent"], format!("00-{TRACE}-{}-01", call.id));
    assert_eq!(headers["tracestate"], "congo=t61rcWkgMzE");
    let worked = collector.span("step work");
    assert_eq!(task["traceparent"], format!("00-{TRACE}-{}-01", worked.id));
    assert_eq!(
        (worked.attributes["switchyard.worker"].as_str(), task["tracestate"].as_str()),
        ("w", Some("congo=t61rcWkgMzE"))
    );
    // There is a span for both attempts, and the first has the error.
    let tries: Vec<_> = collector.spans().into_iter().filter(|span| span.name == "step again").collect();
    assert_eq!(tries.len(), 2);
    let failed = tries.iter().find(|span| span.attributes["switchyard.attempt"] == "1").unwrap();
    assert_eq!(failed.error.as_deref(), Some("try later"));
    assert_eq!(failed.attributes["error.type"], "busy");
    // The span of a child run is a child of the span in which its parent's step waits.
    let child = collector.span("run everything/each");
    assert_eq!(child.parent, collector.span("wait each").id);
    assert_eq!(collector.span("step inner").parent, child.id);
}

#[tokio::test]
async fn a_trace_that_is_not_sampled_is_passed_on_and_not_exported() {
    let collector = TestCollector::start().await;
    let observe = collector.observe(client(), 1.0);
    let server = TestServer::with(|options| options.observe = observe).await;
    let run = submit_within(&server, everything(&format!("http://{}/echo", collector.address)), "00").await;
    let (_, headers) = carry_through(&server, &run).await;
    assert!(collector.spans().is_empty(), "{:#?}", collector.spans());
    let passed_on = headers["traceparent"].as_str().unwrap();
    assert!(passed_on.starts_with(&format!("00-{TRACE}-")) && passed_on.ends_with("-00"), "{passed_on}");
}

#[tokio::test]
async fn without_export_the_callers_context_is_passed_through() {
    let collector = TestCollector::start().await;
    let server = TestServer::start().await;
    let echo = format!("http://{}/echo", collector.address);
    let run = submit_within(&server, everything(&echo), "01").await;
    let (task, headers) = carry_through(&server, &run).await;
    assert_eq!(headers["traceparent"], format!("00-{TRACE}-{CALLER}-01"));
    assert_eq!(task["traceparent"], format!("00-{TRACE}-{CALLER}-01"));
    // Without a collector nothing is exported.
    let run = server.submit(everything(&echo), json!({})).await;
    let (task, headers) = carry_through(&server, &run).await;
    assert_eq!((&task["traceparent"], headers.get("traceparent")), (&Value::Null, None));
}

#[tokio::test]
async fn a_run_that_nobody_traces_has_a_trace_of_its_own_through_a_restart() {
    let collector = TestCollector::start().await;
    let observe = collector.observe(client(), 1.0);
    let server = TestServer::with(|options| options.observe = observe).await;
    let run = server.submit(crate::harness::waiting(), json!({})).await;
    let greeted = server.submit(hello(), json!({})).await;
    server.end(&greeted).await;
    let observe = collector.observe(client(), 1.0);
    let server = server.restart_with(|options| options.observe = observe).await;
    server.post(&format!("/v1/runs/{run}/signals/go"), json!({})).await.expect(200);
    server.end(&run).await;
    server.fixture.services().observe.shut_down().await;
    let (waited, hello) = (collector.span("run waiting"), collector.span("run hello"));
    assert_eq!((waited.parent.as_str(), hello.parent.as_str()), ("", ""));
    assert_ne!(waited.trace, hello.trace);
    // One process began the step, and another ended it.
    assert_eq!(collector.span("step wait").trace, waited.trace);
    assert_eq!(
        (collector.span("step after").trace, collector.span("step after").parent),
        (waited.trace, waited.id)
    );
}

#[tokio::test]
async fn a_collector_that_is_away_harms_nobody() {
    let observe = TestCollector::away().observe(client(), 1.0);
    let server = TestServer::with(|options| options.observe = observe).await;
    let run = server.submit(hello(), json!({})).await;
    assert_eq!(server.end(&run).await["status"], "succeeded");
    server.fixture.services().observe.shut_down().await;
    let page = server.client.get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("switchyard_spans_exported_total 0"), "{page}");
    assert!(page.contains("switchyard_spans_dropped_total 2"), "{page}");
}
