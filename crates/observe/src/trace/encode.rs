//! Encodes spans as OTLP.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as OtlpSpan, Status};
use prost::Message;
use switchyard_core::Timestamp;

use super::span::{Attribute, Span};

/// The body of a request to the collector.
pub(super) fn request(service: &str, spans: Vec<Span>) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let scope = InstrumentationScope {
        name: "switchyard".to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    };
    let resource = Resource {
        attributes: vec![text("service.name", service), text("service.version", version)],
        ..Resource::default()
    };
    let scope_spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.into_iter().map(span).collect(),
        ..ScopeSpans::default()
    };
    let resource_spans = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }.encode_to_vec()
}

fn span(span: Span) -> OtlpSpan {
    let attribute = |(key, value): (&str, Attribute)| match value {
        Attribute::Text(value) => text(key, &value),
        Attribute::Number(value) => pair(key, any_value::Value::IntValue(value)),
    };
    let status = match span.error {
        Some(message) => Status { message, code: StatusCode::Error as i32 },
        None => Status { message: String::new(), code: StatusCode::Unset as i32 },
    };
    OtlpSpan {
        trace_id: span.trace.0.to_vec(),
        span_id: span.id.0.to_vec(),
        parent_span_id: span.parent.map(|parent| parent.0.to_vec()).unwrap_or_default(),
        trace_state: span.state.as_deref().unwrap_or_default().to_owned(),
        name: span.name,
        kind: SpanKind::Internal as i32,
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.end),
        attributes: span.attributes.into_iter().map(attribute).collect(),
        status: Some(status),
        ..OtlpSpan::default()
    }
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0).saturating_mul(1_000_000)
}

fn text(key: &str, value: &str) -> KeyValue {
    pair(key, any_value::Value::StringValue(value.to_owned()))
}

fn pair(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
