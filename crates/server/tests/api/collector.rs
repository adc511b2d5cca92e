//! A collector of spans on a free port, with an additional route that returns the headers of its request.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use parking_lot::Mutex;
use prost::Message;
use switchyard_observe::Observe;
use switchyard_observe::trace::{Collector, Exporter, Spans};
use tokio::net::TcpListener;

#[derive(Clone, Default)]
struct Received {
    spans: Arc<Mutex<Vec<Span>>>,
}

/// A span that the collector received, with hexadecimal ids.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) error: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
}

pub(crate) struct TestCollector {
    pub(crate) address: SocketAddr,
    received: Received,
}

impl TestCollector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Received::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .route("/echo", get(echo))
            .with_state(received.clone());
        let state = hyper_util::service::TowerToHyperService::new(router);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let builder =
                    hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
                let service = state.clone();
                tokio::spawn(async move {
                    let io = hyper_util::rt::TokioIo::new(stream);
                    let _ = builder.serve_connection(io, service).await;
                });
            }
        });
        Self { address, received }
    }

    /// The address of a collector that cannot be reached.
    pub(crate) fn away() -> Self {
        Self { address: "127.0.0.1:1".parse().unwrap(), received: Received::default() }
    }

    /// An observer that exports its spans to this collector.
    pub(crate) fn observe(&self, client: reqwest::Client, sample: f64) -> Observe {
        let observe = Observe::default();
        let headers = HeaderMap::from_iter([("x-token".parse().unwrap(), "abc".parse().unwrap())]);
        let endpoint = format!("http://{}/", self.address);
        let collector = Collector { endpoint, headers, service: "tested".to_owned() };
        let exporter = Exporter::start(client, collector, observe.metrics().clone());
        observe.with_spans(Spans::new(exporter, sample))
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.received.spans.lock().clone()
    }

    /// The one span of this name.
    pub(crate) fn span(&self, name: &str) -> Span {
        let mut found: Vec<Span> = self.spans().into_iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name} in {:#?}", self.spans());
        found.remove(0)
    }
}

async fn take(State(received): State<Received>, headers: HeaderMap, body: Bytes) -> &'static str {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["x-token"], "abc");
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    for resource in request.resource_spans {
        let service =
            resource.resource.unwrap().attributes.into_iter().find(|pair| pair.key == "service.name");
        assert_eq!(text(service.unwrap().value.unwrap().value), "tested");
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        received.spans.lock().extend(spans.map(Span::read));
    }
    ""
}

async fn echo(headers: HeaderMap) -> Json<BTreeMap<String, String>> {
    let named = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    Json(headers.iter().map(named).collect())
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

impl Span {
    fn read(span: OtlpSpan) -> Self {
        assert!(span.start_time_unix_nano > 0 && span.start_time_unix_nano <= span.end_time_unix_nano);
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let attribute = |pair: opentelemetry_proto::tonic::common::v1::KeyValue| {
            (pair.key, text(pair.value.and_then(|value| value.value)))
        };
        let status = span.status.unwrap();
        Self {
            trace: hex(span.trace_id),
            id: hex(span.span_id),
            parent: hex(span.parent_span_id),
            name: span.name,
            error: (status.code == 2).then_some(status.message),
            attributes: span.attributes.into_iter().map(attribute).collect(),
        }
    }
}
