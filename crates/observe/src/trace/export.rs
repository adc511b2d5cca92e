//! Exports spans to the collector (OTLP over HTTP). Runs never wait for it: spans that it does not accept are dropped
//! and counted.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, StatusCode};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::encode;
use super::span::Span;
use crate::Metrics;

/// The size of the queue of spans; spans beyond it are dropped.
const WAITING_MAX: usize = 8_192;

/// The most spans in one request.
const BATCH_MAX: usize = 512;

/// How long the exporter collects further spans after the first one of a request.
const GATHER: Duration = Duration::from_secs(2);

/// How long the collector may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How long sending the queued spans may take when the process ends.
const FLUSH_MAX: Duration = Duration::from_secs(5);

const TRIES: u32 = 3;

/// The back-off after the first failed try; it doubles with each further one.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The shortest time between two warnings about the collector.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The collector that receives the spans.
#[derive(Clone, Debug)]
pub struct Collector {
    /// Base URL for all OTLP signals, such as `http://127.0.0.1:4318`; spans go to `/v1/traces` below it.
    pub endpoint: String,
    /// Headers of every request, such as a token.
    pub headers: HeaderMap,
    /// `service.name` of this process.
    pub service: String,
}

/// Queues spans, and sends them in batches.
#[derive(Debug)]
pub struct Exporter {
    spans: mpsc::Sender<Span>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    sending: Mutex<Option<JoinHandle<()>>>,
}

impl Exporter {
    /// Starts the sending task. Must be called within a Tokio runtime.
    pub fn start(client: Client, collector: Collector, metrics: Arc<Metrics>) -> Self {
        let (spans, inbox) = mpsc::channel(WAITING_MAX);
        let stop = CancellationToken::new();
        let sender = Sender {
            url: format!("{}/v1/traces", collector.endpoint.trim_end_matches('/')),
            client,
            collector,
            inbox,
            metrics: metrics.clone(),
            stop: stop.clone(),
            told: None,
        };
        let sending = Mutex::new(Some(tokio::spawn(sender.work())));
        Self { spans, metrics, stop, sending }
    }

    pub(super) fn hand_over(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.metrics.spans_dropped.inc();
        }
    }

    pub(super) async fn shut_down(&self) {
        self.stop.cancel();
        let sending = self.sending.lock().take();
        if let Some(sending) = sending
            && tokio::time::timeout(FLUSH_MAX, sending).await.is_err()
        {
            tracing::warn!("the trace collector did not take the last spans in time");
        }
    }
}

struct Sender {
    client: Client,
    url: String,
    collector: Collector,
    inbox: mpsc::Receiver<Span>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    /// When the last warning was logged.
    told: Option<Instant>,
}

/// Why a request failed, and whether it may be retried.
struct Trouble {
    why: String,
    passing: bool,
}

impl Sender {
    async fn work(mut self) {
        while let Some(batch) = self.gather().await {
            self.send(batch).await;
        }
    }

    /// The next batch; `None` when the exporter stops and the queue is empty.
    async fn gather(&mut self) -> Option<Vec<Span>> {
        let first = tokio::select! {
            biased;
            span = self.inbox.recv() => span,
            () = self.stop.cancelled() => self.inbox.try_recv().ok(),
        };
        let mut batch = vec![first?];
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH_MAX {
            let next = tokio::select! {
                biased;
                span = self.inbox.recv() => span,
                () = self.stop.cancelled() => self.inbox.try_recv().ok(),
                () = tokio::time::sleep_until(until) => None,
            };
            match next {
                Some(span) => batch.push(span),
                None => break,
            }
        }
        Some(batch)
    }

    async fn send(&mut self, batch: Vec<Span>) {
        let count = batch.len() as u64;
        let body = encode::request(&self.collector.service, batch);
        let mut pause = AGAIN_AFTER;
        for tried in 1.. {
            match self.post(body.clone()).await {
                Ok(()) => {
                    self.metrics.spans_exported.inc_by(count);
                    return;
                }
                Err(trouble) if tried < TRIES && trouble.passing && !self.stop.is_cancelled() => {
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.stop.cancelled() => {}
                    }
                    pause *= 2;
                }
                Err(trouble) => {
                    self.metrics.spans_dropped.inc_by(count);
                    return self.tell(&trouble.why);
                }
            }
        }
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), Trouble> {
        let request = self.client.post(&self.url).headers(self.collector.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/x-protobuf").timeout(ANSWER_MAX).body(body);
        let response = request
            .send()
            .await
            .map_err(|error| Trouble { why: reason(&error.without_url()), passing: true })?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(Trouble { why: format!("it answered {status}"), passing: may_pass(status) }),
        }
    }

    /// Logs a warning, rate-limited: a collector that is down for a day must not fill the log.
    fn tell(&mut self, why: &str) {
        let now = Instant::now();
        if self.told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY) {
            self.told = Some(now);
            tracing::warn!(
                endpoint = %self.collector.endpoint,
                dropped = self.metrics.spans_dropped.get(),
                "spans could not be exported: {why}"
            );
        }
    }
}

/// The statuses that OTLP calls retryable.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

/// The text of the innermost cause, which names the actual failure.
fn reason(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
