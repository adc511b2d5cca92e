//! Many subscribers to the events of one busy run: the time until all of them have all events, and the lag of each
//! event.
//!
//! The run waits for a signal until all subscribers are connected. Subscribers are plain sockets, so that the client
//! costs little beside the server that is measured; they still share its cores.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use reqwest::Client;
use serde_json::{Value, json};
use switchyard_core::Timestamp;
use switchyard_store::{Clock, SystemClock};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::Args;
use crate::report::Figures;

pub(crate) async fn measure(client: &Client, args: &Args, figures: Figures) -> anyhow::Result<Figures> {
    let run = submit(client, args).await?;
    let before = server_memory(client, args).await?;
    let mut subscribers = Vec::new();
    for _ in 0..args.http_subscribers {
        subscribers.push(Subscriber::open(args, &run).await?);
    }
    let subscribers = try_join_all(subscribers.into_iter().map(Subscriber::reach_the_gate)).await?;
    let after = server_memory(client, args).await?;
    let begun = Instant::now();
    let reading = subscribers.into_iter().map(|one| tokio::spawn(one.read_to_the_end()));
    let signal = client.post(format!("{}/v1/runs/{run}/signals/go", args.http_url)).send();
    let (lags, signalled) = tokio::join!(try_join_all(reading), signal);
    ensure!(signalled?.status().is_success(), "the signal was refused");
    let lags = lags?.into_iter().collect::<anyhow::Result<Vec<_>>>()?.concat();
    let took = begun.elapsed();
    let figures =
        figures.with("sse_events_per_s", lags.len() as f64 / took.as_secs_f64()).with_times("sse_lag", &lags);
    Ok(match (before, after) {
        (Some(before), Some(after)) => {
            let each = (after - before).max(0.0) / args.http_subscribers.max(1) as f64;
            figures.with("sse_bytes_per_subscriber", each)
        }
        _ => figures,
    })
}

/// Submits a run that waits for a signal, and then has many no-op steps.
async fn submit(client: &Client, args: &Args) -> anyhow::Result<String> {
    let mut nodes = json!({ "n0": { "type": "wait", "signal": "go" } });
    for n in 1..=args.http_steps {
        let before = format!("n{}", n - 1);
        nodes[format!("n{n}")] = json!({ "type": "transform", "needs": [before], "value": n });
    }
    let definition = json!({ "name": "switchyard-bench-sse", "nodes": nodes });
    let request = client.post(format!("{}/v1/runs", args.http_url)).json(&json!({ "workflow": definition }));
    let answer: Value = request.send().await?.error_for_status()?.json().await?;
    Ok(answer["run_id"].as_str().context("a run id")?.to_owned())
}

/// The resident memory that the server reports in its metrics.
async fn server_memory(client: &Client, args: &Args) -> anyhow::Result<Option<f64>> {
    let page = client.get(format!("{}/metrics", args.http_url)).send().await?.text().await?;
    let value = page.lines().find_map(|line| line.strip_prefix("switchyard_resident_memory_bytes "));
    Ok(value.and_then(|value| value.parse().ok()))
}

struct Subscriber {
    lines: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Subscriber {
    async fn open(args: &Args, run: &str) -> anyhow::Result<Self> {
        let host = args.http_url.strip_prefix("http://").context("subscribers speak plain http")?;
        let host = host.trim_end_matches('/');
        let mut stream = TcpStream::connect(host).await.with_context(|| {
            format!("{host} takes no more connections; `ulimit -n` limits them on both sides")
        })?;
        let key =
            args.http_key.as_ref().map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        let request = format!("GET /v1/runs/{run}/events HTTP/1.1\r\nhost: {host}\r\n{key}\r\n");
        stream.write_all(request.as_bytes()).await?;
        Ok(Self { lines: BufReader::with_capacity(4 * 1024, stream), line: Vec::new() })
    }

    /// The next line; `None` at the end of the stream.
    async fn next(&mut self) -> anyhow::Result<Option<&[u8]>> {
        self.line.clear();
        let read = self.lines.read_until(b'\n', &mut self.line).await?;
        Ok((read > 0).then_some(self.line.as_slice()))
    }

    async fn reach_the_gate(mut self) -> anyhow::Result<Self> {
        let mut waits = false;
        while let Some(line) = self.next().await? {
            let refused = line.starts_with(b"HTTP/1.1") && !line.starts_with(b"HTTP/1.1 200");
            ensure!(!refused, "the server answered {}", String::from_utf8_lossy(line).trim());
            if waits && line.starts_with(b"data: ") {
                return Ok(self);
            }
            waits |= line.starts_with(b"event: node_waiting");
        }
        anyhow::bail!("a stream ended too early")
    }

    /// Reads all events; returns the lag of each. The server's clock is this machine's, in milliseconds.
    async fn read_to_the_end(mut self) -> anyhow::Result<Vec<Duration>> {
        let mut lags = Vec::new();
        let mut last = false;
        while let Some(line) = self.next().await? {
            if line.starts_with(b"event: run_ended") {
                last = true;
            }
            let Some(data) = line.strip_prefix(b"data: ") else { continue };
            lags.push(SystemClock.now().since(happened_at(data)?));
            if last {
                return Ok(lags);
            }
        }
        anyhow::bail!("a stream ended too early")
    }
}

/// Parses the time of an event such as `{"seq":4,"at":"2026-01-31T12:00:00.000Z",…`.
fn happened_at(data: &[u8]) -> anyhow::Result<Timestamp> {
    let text = std::str::from_utf8(data)?;
    let at = text
        .split_once("\"at\":\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .context("an event without a time")?;
    Ok(at.0.parse()?)
}
