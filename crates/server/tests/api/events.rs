//! Event streams: complete, live, and resumable across restarts.

use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::harness::{Answer, PATIENCE, TestServer, hello, waiting};

/// A client of server-sent events that remembers its last event.
struct Reader {
    client: reqwest::Client,
    url: String,
    last: u64,
    seen: Vec<Value>,
}

enum Ended {
    /// The server ended the stream.
    Stream,
    /// The reader dropped the connection.
    Dropped,
    /// The run has no event after the last one.
    NothingMore,
    NoServer,
}

impl Reader {
    fn new(server: &TestServer, run: &str) -> Self {
        let url = server.url(&format!("/v1/runs/{run}/events"));
        Self { client: server.client.clone(), url, last: 0, seen: Vec::new() }
    }

    /// Reads until the stream ends or `enough` bytes have arrived; discards an incomplete last event.
    async fn read(&mut self, enough: usize) -> Ended {
        let request = self.client.get(&self.url).header("accept", "text/event-stream");
        let request = if self.last > 0 { request.header("last-event-id", self.last) } else { request };
        let Ok(mut response) = request.send().await else { return Ended::NoServer };
        if response.status() == 204 {
            return Ended::NothingMore;
        }
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut text = Vec::new();
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            let chunk = &chunk[..chunk.len().min(enough - read)];
            read += chunk.len();
            text.extend_from_slice(chunk);
            self.take_whole_events(&mut text);
            if read >= enough {
                return Ended::Dropped;
            }
        }
        Ended::Stream
    }

    fn take_whole_events(&mut self, text: &mut Vec<u8>) {
        while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            self.take(std::str::from_utf8(&event).unwrap());
        }
    }

    fn take(&mut self, event: &str) {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let Some(data) = field("data") else {
            assert!(event.starts_with(':'), "{event}");
            return;
        };
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(field("event"), data["type"].as_str());
        assert_eq!(field("id").unwrap().parse::<u64>().unwrap(), data["seq"].as_u64().unwrap());
        assert_eq!(data["seq"].as_u64().unwrap(), self.last + 1, "none missing, none twice");
        self.last += 1;
        self.seen.push(data);
    }
}

/// The history from the archive, read in pages.
pub(crate) async fn archived(server: &TestServer, run: &str) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let url = server.url(&format!("/v1/runs/{run}/events?limit=7&after={}", events.len()));
        let response = server.client.get(url).header("accept", "application/json").send().await.unwrap();
        let page = Answer::of(response).await.expect(200);
        events.extend(page["events"].as_array().unwrap().iter().cloned());
        if page["next"].is_null() {
            assert_eq!(page["ended"], events.last().is_some_and(|event| event["type"] == "run_ended"));
            return events;
        }
    }
}

/// A workflow of `length` steps, one after the other.
pub(crate) fn chain(length: usize) -> Value {
    let mut nodes = json!({ "n0": { "type": "transform", "value": 0 } });
    for n in 1..length {
        let before = format!("n{}", n - 1);
        nodes[format!("n{n}")] = json!({ "type": "transform", "needs": [before], "value": n });
    }
    json!({ "name": "chain", "nodes": nodes })
}

#[tokio::test]
async fn a_stream_replays_and_ends_with_its_run() {
    let server = TestServer::start().await;
    let run = server.submit(hello(), json!({ "name": "Ada" })).await;
    let mut reader = Reader::new(&server, &run);
    assert!(matches!(reader.read(usize::MAX).await, Ended::Stream));
    assert_eq!(reader.seen.first().unwrap()["type"], "run_accepted");
    assert_eq!(reader.seen.first().unwrap()["input"], json!({ "name": "Ada" }));
    assert_eq!(reader.seen.last().unwrap()["type"], "run_ended");
    assert_eq!(reader.seen, archived(&server, &run).await);
    assert!(matches!(reader.read(usize::MAX).await, Ended::NothingMore));
    let late = server.get(&format!("/v1/runs/{run}/events?after={}", reader.last + 1)).await;
    late.problem(400, "invalid_query");
}

#[tokio::test]
async fn a_stream_follows_live() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    let mut reader = Reader::new(&server, &run);
    let reading = tokio::spawn(async move {
        reader.read(usize::MAX).await;
        reader
    });
    server.post(&format!("/v1/runs/{run}/signals/go"), json!({ "payload": 1 })).await.expect(200);
    let reader = tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert_eq!(reader.seen, archived(&server, &run).await);
}

#[tokio::test]
async fn a_run_that_is_retried_goes_on_in_its_stream() {
    let server = TestServer::start().await;
    let run = server.submit(waiting(), Value::Null).await;
    server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    server.end(&run).await;
    server.post(&format!("/v1/runs/{run}/retry"), json!({})).await.expect(200);
    server.post(&format!("/v1/runs/{run}/signals/go"), json!({ "payload": 1 })).await.expect(200);
    let mut reader = Reader::new(&server, &run);
    while !matches!(reader.read(usize::MAX).await, Ended::NothingMore) {}
    assert_eq!(reader.seen, archived(&server, &run).await);
    assert!(reader.seen.iter().filter(|event| event["type"] == "run_ended").count() == 2);
}

#[tokio::test]
async fn a_reader_that_drops_at_random_misses_and_repeats_nothing() {
    let server = TestServer::start().await;
    let seed: u64 = rand::random();
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let run = server.submit(chain(200), Value::Null).await;
    let mut reader = Reader::new(&server, &run);
    let read =
        async { while !matches!(reader.read(random.random_range(1..8_000)).await, Ended::NothingMore) {} };
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("seed {seed}"));
    assert_eq!(reader.seen, archived(&server, &run).await, "seed {seed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_resumes_through_restarts_of_the_server() {
    let mut server = TestServer::start().await;
    let seed: u64 = rand::random();
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let run = server.submit(chain(400), Value::Null).await;
    let mut reader = Reader::new(&server, &run);
    let mut pieces = rand::rngs::StdRng::seed_from_u64(seed + 1);
    let reading = tokio::spawn(async move {
        loop {
            match reader.read(pieces.random_range(1..20_000)).await {
                Ended::NothingMore => return reader,
                // The server is being restarted: let the next one start.
                Ended::NoServer => tokio::task::yield_now().await,
                Ended::Stream | Ended::Dropped => {}
            }
        }
    });
    for _ in 0..3 {
        let mut follow = server.fixture.engine().follow(run.parse().unwrap(), 0);
        let until = random.random_range(1..200);
        let mut seen = 0;
        // Waits until some way into the run, or until its end.
        while seen < until {
            let events = follow.next().await.unwrap();
            seen += events.len();
            if events.iter().any(|event| event.kind.name() == "run_ended") {
                break;
            }
        }
        drop(follow);
        server = server.restart().await;
    }
    let reader =
        tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("seed {seed}")).unwrap();
    assert_eq!(reader.seen, archived(&server, &run).await, "seed {seed}");
}
