//! Spans and log lines of a run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::harness::{HELLO, PATIENCE, Sandbox};

/// Accepts one request, answers 200, and sends its head and its spans to the receiver.
fn collector() -> (SocketAddr, mpsc::Receiver<(String, Vec<Span>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            stream.read_line(&mut head).unwrap();
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        let spans = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        sender.send((head, spans.flat_map(|scope| scope.spans).collect())).unwrap();
    });
    (address, received)
}

#[test]
fn spans_reach_the_collector_before_the_command_ends() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let (address, received) = collector();
    sandbox.file("switchyard.toml", &format!("[otlp]\nendpoint = \"http://{address}\"\n"));
    let mut command = sandbox.command(&["run", "hello.yaml", "-i", "name=Ada"]);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hush");
    assert!(command.output().unwrap().status.success());
    let (head, spans) = received.recv_timeout(PATIENCE).unwrap();
    assert!(head.starts_with("post /v1/traces "), "{head}");
    assert!(head.contains("authorization: bearer hush"), "{head}");
    let named = |name: &str| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let run = named("run hello");
    assert!(run.parent_span_id.is_empty());
    for step in ["step greet", "step repeat", "step /output"] {
        assert_eq!(
            (&named(step).trace_id, &named(step).parent_span_id),
            (&run.trace_id, &run.span_id),
            "{step}"
        );
    }
}

#[test]
fn a_collector_that_is_away_is_told_once_and_harms_nothing() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let mut command = sandbox.command(&["run", "hello.yaml", "-i", "name=Ada", "--log", "warn"]);
    let output = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr.matches("spans could not be exported").count(), 1, "{stderr}");
}

#[test]
fn log_lines_say_which_run_and_which_step() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let args =
        ["run", "hello.yaml", "-i", "name=Ada", "--log-format", "json", "--log", "switchyard_observe=debug"];
    let stderr = String::from_utf8(sandbox.output(&args).stderr).unwrap();
    let lines: Vec<serde_json::Value> = stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let run = sandbox.newest_run();
    assert!(lines.iter().all(|line| line["run"] == run.as_str()), "{stderr}");
    let said = |message: &str| {
        lines.iter().find(|line| line["message"] == message).unwrap_or_else(|| panic!("{message}: {stderr}"))
    };
    assert_eq!(said("run accepted")["workflow"], "hello");
    let claimed = said("step claimed");
    assert_eq!((&claimed["node"], &claimed["attempt"]), (&"greet".into(), &1.into()));
    assert!(claimed["worker"].as_str().unwrap().starts_with("embedded-"));
    said("run ended");
}
