//! Runs and events as clients see them: payloads as plain JSON, moments as RFC 3339.

use serde_json::{Map, Value, json};
use switchyard_core::run::Event;
use switchyard_core::{CasRef, Timestamp};
use switchyard_runtime::RunView;

use crate::problem::Problem;

/// Fields of events that are moments.
const MOMENTS: [&str; 4] = ["until", "timeout_at", "deadline", "retry_at"];

/// One flat document: `seq`, `at`, `type`, `run_id`, then what the event says.
pub(crate) fn event(event: &Event) -> Result<Value, Problem> {
    let mut flat = Map::new();
    flat.insert("seq".into(), event.seq.into());
    flat.insert("at".into(), event.at.to_string().into());
    flat.insert("type".into(), event.kind.name().into());
    flat.insert("run_id".into(), event.run.to_string().into());
    let stored = serde_json::to_value(&event.kind)?;
    if let Value::Object(variant) = stored
        && let Some((_, Value::Object(fields))) = variant.into_iter().next()
    {
        for (name, value) in fields {
            // An event's own `at` is when it happened.
            let name = if name == "at" { "retry_at".to_owned() } else { name };
            let value = plain_field(&name, value);
            flat.insert(name, value);
        }
    }
    Ok(Value::Object(flat))
}

/// A run; the operations of its patches are payloads as well.
pub(crate) fn run(view: &RunView) -> Result<Value, Problem> {
    let mut document = serde_json::to_value(view)?;
    if let Some(patches) = document.get_mut("patches") {
        *patches = plain(patches.take());
    }
    Ok(document)
}

/// Stored form to plain form. A payload is stored as `{"json": …}` or `{"cas": {…}}`, and what is in it is not
/// looked into; nothing else that is stored has such a single field.
pub(crate) fn plain(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(mut fields) if fields.len() == 1 => {
            if let Some(payload) = fields.remove("json") {
                return payload;
            }
            if let Some(reference) = fields.get("cas").and_then(cas) {
                return reference;
            }
            plain_fields(fields)
        }
        Value::Object(fields) => plain_fields(fields),
        other => other,
    }
}

fn plain_fields(fields: Map<String, Value>) -> Value {
    fields
        .into_iter()
        .map(|(name, value)| {
            let value = plain_field(&name, value);
            (name, value)
        })
        .collect()
}

fn plain_field(name: &str, value: Value) -> Value {
    match value.as_i64() {
        Some(millis) if MOMENTS.contains(&name) => Timestamp::from_millis(millis).to_string().into(),
        _ => plain(value),
    }
}

fn cas(stored: &Value) -> Option<Value> {
    let reference: CasRef = serde_json::from_value(stored.clone()).ok()?;
    Some(json!({ "cas": reference.to_string(), "bytes": reference.bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchyard_core::run::EventKind;
    use switchyard_core::{Hash, NodeError, Payload, RunId};

    fn flat(kind: EventKind) -> Value {
        let at = Timestamp::from_millis(0);
        event(&Event { run: RunId::new(at, 0, 0), seq: 3, at, kind }).unwrap()
    }

    #[test]
    fn payloads_are_plain_and_not_looked_into() {
        let output = Payload::from_value(&json!({"json": {"json": 1}, "until": 5}));
        let seen = flat(EventKind::NodeSucceeded { node: "a".into(), output });
        assert_eq!(seen["output"], json!({"json": {"json": 1}, "until": 5}));
        assert_eq!(seen["node"], "a");
        let single = Payload::from_value(&json!({"json": {"cas": 1}}));
        let seen = flat(EventKind::NodeSucceeded { node: "a".into(), output: single });
        assert_eq!(seen["output"], json!({"json": {"cas": 1}}));
    }

    #[test]
    fn large_payloads_are_references() {
        let hash = Hash::of(b"x");
        let output = Payload::Cas(CasRef { hash, bytes: 5_000 });
        let seen = flat(EventKind::NodeSucceeded { node: "a".into(), output });
        assert_eq!(seen["output"], json!({"cas": format!("cas://{hash}"), "bytes": 5000}));
    }

    #[test]
    fn a_retry_has_two_moments() {
        let error = NodeError::retryable("x", "y");
        let at = Timestamp::from_millis(1_000);
        let seen = flat(EventKind::NodeRetrying { node: "a".into(), attempt: 1, error, at });
        assert_eq!(seen["at"], "1970-01-01T00:00:00.000Z");
        assert_eq!(seen["retry_at"], "1970-01-01T00:00:01.000Z");
        assert_eq!(seen["type"], "node_retrying");
    }
}
