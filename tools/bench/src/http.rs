//! A running server over loopback: submissions per second, compared with plain requests per second.
//!
//! The client is this process and shares the machine with the server, so only the ratio is meaningful.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Request};
use serde_json::json;

use crate::Args;
use crate::report::Figures;
use crate::sse;

const CONNECTIONS: [usize; 3] = [1, 16, 64];

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &args.http_key {
        let mut value = HeaderValue::try_from(format!("Bearer {key}")).context("--http-key is not a key")?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let client = switchyard_runtime::kinds::http_client().no_proxy().default_headers(headers).build()?;
    let name = register(&client, args).await?;
    let mut figures = Figures::default();
    for connections in CONNECTIONS {
        let health = client.get(format!("{}/healthz", args.http_url)).build()?;
        let healthz = drive(&client, &health, connections, args.http_requests).await?;
        let body = json!({ "workflow": name });
        let submit = client.post(format!("{}/v1/runs", args.http_url)).json(&body).build()?;
        let runs = drive(&client, &submit, connections, args.http_requests).await?;
        figures = figures
            .with(&format!("c{connections:02}_healthz_per_s"), healthz.per_second())
            .with(&format!("c{connections:02}_runs_per_s"), runs.per_second())
            .with_times(&format!("c{connections:02}_run"), &runs.times);
    }
    sse::measure(&client, args, figures).await
}

/// Registers a workflow of one no-op step, and returns its name.
async fn register(client: &Client, args: &Args) -> anyhow::Result<String> {
    let name = "switchyard-bench-http";
    let definition = json!({ "name": name, "nodes": { "a": { "type": "function", "function": "noop" } } });
    let request = client.post(format!("{}/v1/workflows", args.http_url)).json(&definition);
    let answer = request.send().await.with_context(|| format!("no server answers at {}", args.http_url))?;
    ensure!(answer.status().is_success(), "the server answered {}", answer.status());
    Ok(name.to_owned())
}

struct Driven {
    times: Vec<Duration>,
    took: Duration,
}

impl Driven {
    fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.took.as_secs_f64()
    }
}

async fn drive(
    client: &Client,
    request: &Request,
    connections: usize,
    requests: usize,
) -> anyhow::Result<Driven> {
    let begun = Instant::now();
    let each = requests.div_ceil(connections);
    let times = try_join_all((0..connections).map(|_| {
        let (client, request) = (client.clone(), request.try_clone());
        tokio::spawn(
            async move { one_connection(&client, request.context("a body that repeats")?, each).await },
        )
    }))
    .await?;
    let took = begun.elapsed();
    let times = times.into_iter().collect::<anyhow::Result<Vec<_>>>()?.concat();
    Ok(Driven { times, took })
}

/// Sends requests one after the other.
async fn one_connection(client: &Client, request: Request, requests: usize) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(requests);
    for _ in 0..requests {
        let begun = Instant::now();
        let answer = client.execute(request.try_clone().context("a body that repeats")?).await?;
        ensure!(answer.status().is_success(), "the server answered {}", answer.status());
        answer.bytes().await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}
