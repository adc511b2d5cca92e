//! Converts documents from their stored form to the form that clients see.

use serde_json::{Map, Value, json};
use switchyard_core::{CasRef, Timestamp};

/// Fields of events that are timestamps.
const MOMENTS: [&str; 5] = ["until", "start_at", "timeout_at", "deadline", "retry_at"];

/// Converts a document from its stored form to plain JSON. A payload is stored as `{"json": …}` or `{"cas": {…}}`, and
/// its content is not converted; no other stored object has one of these as its only field.
pub fn plain(value: Value) -> Value {
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

pub(crate) fn plain_field(name: &str, value: Value) -> Value {
    match value.as_i64() {
        Some(millis) if MOMENTS.contains(&name) => Timestamp::from_millis(millis).to_string().into(),
        _ => plain(value),
    }
}

fn cas(stored: &Value) -> Option<Value> {
    let reference: CasRef = serde_json::from_value(stored.clone()).ok()?;
    Some(payload_reference(reference))
}

/// The reference that replaces a large payload.
pub fn payload_reference(reference: CasRef) -> Value {
    json!({ "cas": reference.to_string(), "bytes": reference.bytes })
}
