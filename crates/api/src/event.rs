//! One event of a run's history.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchyard_core::{RunId, Timestamp, run, time};

use crate::plain::plain_field;

/// An event as one flat document: `seq`, `at`, `type`, `run_id`, then the event's own fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub seq: u64,
    #[serde(with = "time::rfc3339")]
    pub at: Timestamp,
    /// The type of the event, such as `node_succeeded` or `run_ended`.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    pub run_id: RunId,
    /// The event's own fields; `node` is the node, for an event of a node.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Event {
    /// Converts a stored event to the form that clients see.
    pub fn of(event: &run::Event) -> Result<Self, serde_json::Error> {
        let mut fields = Map::new();
        if let Value::Object(variant) = serde_json::to_value(&event.kind)?
            && let Some((_, Value::Object(stored))) = variant.into_iter().next()
        {
            for (name, value) in stored {
                // `at` is already the time of the event.
                let name = if name == "at" { "retry_at".to_owned() } else { name };
                let value = match name.as_str() {
                    // Clients see the operation's id; its hash is internal.
                    "operation" => value.get("id").cloned().unwrap_or_default(),
                    _ => plain_field(&name, value),
                };
                fields.insert(name, value);
            }
        }
        let kind = event.kind.name().into();
        Ok(Self { seq: event.seq, at: event.at, kind, run_id: event.run, fields })
    }

    pub fn node(&self) -> Option<&str> {
        self.text("node")
    }

    /// Whether this event ends the run. A retry may follow.
    pub fn is_end(&self) -> bool {
        &*self.kind == "run_ended"
    }

    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    pub fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field).and_then(Value::as_u64)
    }

    /// The value of a field; null if the event does not have it.
    pub fn field(&self, field: &str) -> &Value {
        self.fields.get(field).unwrap_or(&Value::Null)
    }

    /// The chunks of streamed output in this event; empty for other types of event.
    pub fn chunks(&self) -> &[Value] {
        let chunks = if &*self.kind == "node_chunks" { self.field("chunks").as_array() } else { None };
        chunks.map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use switchyard_core::run::EventKind;
    use switchyard_core::{CasRef, Hash, NodeError, Payload};

    fn flat(kind: EventKind) -> Value {
        let at = Timestamp::from_millis(0);
        let event = Event::of(&run::Event { run: RunId::new(at, 0, 0), seq: 3, at, kind }).unwrap();
        let document = serde_json::to_value(&event).unwrap();
        assert_eq!(serde_json::from_value::<Event>(document.clone()).unwrap(), event, "it reads back");
        document
    }

    #[test]
    fn payloads_are_plain_and_not_looked_into() {
        let output = Payload::from_value(&json!({"json": {"json": 1}, "until": 5}));
        let seen = flat(EventKind::NodeSucceeded { node: "a".into(), output, cached: false });
        assert_eq!(seen["output"], json!({"json": {"json": 1}, "until": 5}));
        assert_eq!(seen["node"], "a");
        let single = Payload::from_value(&json!({"json": {"cas": 1}}));
        let seen = flat(EventKind::NodeSucceeded { node: "a".into(), output: single, cached: false });
        assert_eq!(seen["output"], json!({"json": {"cas": 1}}));
    }

    #[test]
    fn large_payloads_are_references() {
        let hash = Hash::of(b"x");
        let output = Payload::Cas(CasRef { hash, bytes: 5_000 });
        let seen = flat(EventKind::NodeSucceeded { node: "a".into(), output, cached: false });
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
