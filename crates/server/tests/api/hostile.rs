//! Malicious or broken clients: slow requests, huge requests, many connections at once.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use switchyard_server::{Limits, allow_many_connections};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{PATIENCE, TestServer, hello, one_function, waiting};

async fn send(server: &TestServer, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Reads all bytes until the server closes or resets the connection.
async fn read(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    let read = stream.read_to_end(&mut said);
    let closed = tokio::time::timeout(PATIENCE, read).await.is_ok();
    assert!(closed, "the server does not close the connection after {}", String::from_utf8_lossy(&said));
    String::from_utf8_lossy(&said).into_owned()
}

const POST: &str = "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

#[tokio::test]
async fn whoever_sends_byte_by_byte_is_cut_off() {
    let brief = Duration::from_millis(200);
    let server = TestServer::with_limits(Limits {
        headers_wait_max: brief,
        body_wait_max: brief,
        ..Limits::default()
    })
    .await;
    // A part of a request and then nothing, or nothing at all.
    for begun in ["GET /healthz HTTP/1.1\r\nhost: local", "G", ""] {
        let said = read(&mut send(&server, begun.as_bytes()).await).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{begun:?}: {said}");
    }
    // All headers, and an incomplete body.
    let mut half = send(&server, format!("{POST}content-length: 50\r\n\r\n{{").as_bytes()).await;
    let said = read(&mut half).await;
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("body_too_slow"), "{said}");
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn a_body_of_100_mb_is_refused_before_it_is_sent() {
    let server = TestServer::start().await;
    let mut stream = send(&server, format!("{POST}content-length: 104857600\r\n\r\n").as_bytes()).await;
    let mut head = [0; 12];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
}

#[tokio::test]
async fn a_body_of_100_mb_without_a_length_is_refused_once_it_is_too_long() {
    let server = TestServer::start().await;
    let mut stream = send(&server, format!("{POST}transfer-encoding: chunked\r\n\r\n").as_bytes()).await;
    let (mut reader, mut writer) = stream.split();
    let mib = [&b"100000\r\n"[..], &vec![b'x'; 1 << 20], b"\r\n"].concat();
    let sending = async {
        let mut sent = 0;
        while sent < 100 && writer.write_all(&mib).await.is_ok() {
            sent += 1;
        }
        sent
    };
    let mut said = Vec::new();
    let reading = async {
        let mut piece = [0; 1024];
        while let Ok(read @ 1..) = reader.read(&mut piece).await {
            said.extend_from_slice(&piece[..read]);
        }
    };
    let (sent, ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(sending, reading) }).await.unwrap();
    assert!(sent < 100, "the server took all of it");
    // The connection may be reset before the client reads the response, because the server left bytes unread.
    let said = String::from_utf8_lossy(&said);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 413"), "{said}");
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn huge_and_many_headers_are_refused() {
    let server = TestServer::start().await;
    let huge = format!("x-huge: {}\r\n", "x".repeat(1 << 20));
    let many: String = (0..5_000).map(|n| format!("x-{n}: y\r\n")).collect();
    for headers in [huge, many] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        // The server may close the connection before the whole request is written.
        let _ = stream.write_all(request.as_bytes()).await;
        let said = read(&mut stream).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    }
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn what_is_not_http_or_not_utf8_does_no_harm() {
    let server = TestServer::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"\xff\xfe\x00\r\n\r\n",
        b"GET /v1/runs/\xff\xfe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /v1/runs?status=%FF HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"GET /v1/runs HTTP/1.1\r\nhost: \xff\xfe\r\nconnection: close\r\n\r\n",
        b"GET /v1/runs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \xff\r\nconnection: close\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    ] {
        let said = read(&mut send(&server, bytes).await).await;
        let status = said.split(' ').nth(1).unwrap_or("400");
        assert!(status.starts_with('4') || status.starts_with('2'), "{}: {said}", String::from_utf8_lossy(bytes));
    }
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn requests_that_two_parties_could_read_differently_are_refused() {
    let server = TestServer::start().await;
    let own = format!("http://{}", server.address);
    for request in [
        "GET /v1/runs HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n".to_owned(),
        format!("GET /v1/runs HTTP/1.1\r\nhost: {}\r\norigin: {own}\r\norigin: null\r\n\r\n", server.address),
        "GET /v1/runs HTTP/1.1\nhost: localhost\n\n".to_owned(),
        "GET /v1/runs HTTP/1.1\r\nhost: localhost\nx-a: b\r\n\r\n".to_owned(),
        "\nGET /v1/runs HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET /v1/runs HTTP/1.1\r\nhost: localhost\r\n\n".to_owned(),
        // After a body with a declared length, and after a chunked one.
        format!("{POST}content-length: 2\r\n\r\n{{}}GET /v1/runs HTTP/1.1\nhost: localhost\r\n\r\n"),
        format!(
            "{POST}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\nGET /v1/runs HTTP/1.1\nhost: a\r\n\r\n"
        ),
    ] {
        let mut stream = send(&server, request.as_bytes()).await;
        stream.shutdown().await.unwrap();
        let said = read(&mut stream).await;
        let answers: Vec<&str> = said.split("HTTP/1.1 ").skip(1).collect();
        let last = answers.last().unwrap_or_else(|| panic!("no answer to {request:?}"));
        assert!(last.starts_with("400 "), "{request:?}: {said}");
        assert!(!said.contains("\"runs\""), "{request:?}: {said}");
    }
}

#[tokio::test]
async fn an_address_in_the_request_line_is_a_name_like_the_one_in_host() {
    let server = TestServer::start().await;
    let request = "GET http://evil.example/v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let said = read(&mut send(&server, request.as_bytes()).await).await;
    assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("foreign_host"), "{said}");
}

#[tokio::test]
async fn bodies_may_hold_line_feeds_and_requests_may_follow_each_other() {
    let server = TestServer::start().await;
    let body = "{\n\"workflow\":\n\"nothing\"\n}\n";
    let length = body.len();
    let requests = format!(
        "{POST}content-length: {length}\r\n\r\n{body}\
         {POST}transfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n\
         GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    );
    let said = read(&mut send(&server, requests.as_bytes()).await).await;
    let statuses: Vec<&str> =
        said.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.split(' ').next()).collect();
    assert_eq!(statuses, ["404", "404", "200"], "{said}");
}

#[tokio::test]
async fn submissions_that_race_with_one_key_are_one_run() {
    let server = TestServer::start().await;
    let body = json!({ "workflow": hello(), "input": { "name": "Ada" }, "idempotency_key": "once" });
    let answers = join_all((0..32).map(|_| server.post("/v1/runs", body.clone()))).await;
    let new = answers.iter().filter(|answer| answer.status == 202).count();
    assert_eq!(new, 1);
    let mut runs: Vec<String> =
        answers.into_iter().map(|answer| answer.body["run_id"].as_str().unwrap().to_owned()).collect();
    runs.dedup();
    assert_eq!(runs.len(), 1);
    assert_eq!(server.get("/v1/runs").await.expect(200)["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn completions_that_race_count_once() {
    let server = TestServer::start().await;
    let run = server.submit(one_function(json!({})), json!({ "n": 1 })).await;
    let claimed = server.post("/v1/tasks/claim", json!({ "worker": "w", "wait": "30s" })).await.expect(200);
    let task = &claimed["tasks"][0];
    let complete = |output: u64| {
        let body = json!({ "run_id": task["run_id"], "node": task["node"], "claim": task["claim"], "output": output });
        server.post("/v1/tasks/complete", body)
    };
    let answers = join_all((0..16).map(complete)).await;
    let counted: Vec<usize> =
        answers.iter().enumerate().filter(|(_, answer)| answer.status == 200).map(|(at, _)| at).collect();
    assert_eq!(counted.len(), 1, "{counted:?}");
    for answer in answers.into_iter().filter(|answer| answer.status != 200) {
        answer.problem(409, "already_settled");
    }
    assert_eq!(server.end(&run).await["output"], counted[0]);
}

#[tokio::test]
async fn idle_streams_cost_little_and_all_hear_the_end() {
    allow_many_connections();
    follow_with(200).await;
}

/// Run it with `cargo test -p switchyard-server --test api ten_thousand -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "both ends are here: `ulimit -Hn` must allow more than 21,000 open files"]
async fn ten_thousand_idle_streams() {
    let files = allow_many_connections();
    assert!(files.is_none_or(|files| files > 21_000), "only {files:?} open files are allowed");
    follow_with(10_000).await;
}

/// Follows a waiting run with `count` streams, then lets the run continue.
async fn follow_with(count: usize) {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    let request =
        format!("GET /v1/runs/{run}/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(send(&server, request.as_bytes()).await);
    }
    // The server still serves other clients.
    let hello = server.submit(hello(), json!({})).await;
    assert_eq!(server.end(&hello).await["status"], "succeeded");
    server.post(&format!("/v1/runs/{run}/signals/go"), json!({})).await.expect(200);
    for stream in &mut streams {
        let said = read(stream).await;
        assert!(said.starts_with("HTTP/1.1 200") && said.contains("event: run_ended"), "{said}");
    }
}
