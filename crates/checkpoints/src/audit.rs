//! Converts stored values to JSON, for people and for programs that are not LangGraph.
//!
//! LangGraph's serializer writes MessagePack with extensions for Python objects. An object is shown as `{"$type": …,
//! "value": …}`. No Python object is ever constructed. A value in another format (encrypted, say) is shown as
//! `{"$format": …, "base64": …}`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rmpv::Value as Packed;
use serde_json::{Map, Value, json};

use crate::ops::Stored;
use crate::typed::Typed;
use crate::writes::Write;

/// Objects nested deeper than this are shown as bytes.
const DEPTH_MAX: usize = 64;

/// A checkpoint with its values and writes: a line of an export.
pub fn document(stored: &Stored) -> Value {
    let values: Map<String, Value> =
        stored.values.iter().map(|(channel, value)| (channel.clone(), json(value))).collect();
    json!({
        "thread_id": stored.thread,
        "checkpoint_ns": stored.ns,
        "checkpoint_id": stored.id,
        "parent_checkpoint_id": stored.parent,
        "run_id": stored.run,
        "seq": stored.seq,
        "stored_at_ms": stored.at_ms,
        "metadata": json(&stored.metadata),
        "checkpoint": json(&stored.checkpoint),
        "channel_values": values,
        "pending_writes": stored.writes.iter().map(write).collect::<Vec<_>>(),
    })
}

fn write(write: &Write) -> Value {
    json!({
        "task_id": write.task,
        "task_path": write.path,
        "idx": write.index,
        "channel": write.channel,
        "value": json(&write.value),
    })
}

pub fn json(typed: &Typed) -> Value {
    let shown = match &*typed.format {
        "null" => Some(Value::Null),
        "json" => serde_json::from_slice(&typed.bytes).ok(),
        "msgpack" => unpacked(&typed.bytes, 0),
        _ => None,
    };
    shown.unwrap_or_else(|| json!({"$format": typed.format, "base64": BASE64.encode(&typed.bytes)}))
}

fn unpacked(bytes: &[u8], depth: usize) -> Option<Value> {
    let mut rest = bytes;
    let value = rmpv::decode::read_value_with_max_depth(&mut rest, DEPTH_MAX).ok()?;
    rest.is_empty().then(|| plain(value, depth))
}

fn plain(value: Packed, depth: usize) -> Value {
    match value {
        Packed::Nil => Value::Null,
        Packed::Boolean(is) => Value::Bool(is),
        Packed::Integer(number) => number
            .as_i64()
            .map(Value::from)
            .or_else(|| number.as_u64().map(Value::from))
            .unwrap_or(Value::Null),
        Packed::F32(number) => json!(number),
        Packed::F64(number) if number.is_finite() => json!(number),
        Packed::F64(number) => Value::String(number.to_string()),
        Packed::String(text) => match text.into_str() {
            Some(text) => Value::String(text),
            None => Value::Null,
        },
        Packed::Binary(bytes) => json!({"base64": BASE64.encode(bytes)}),
        Packed::Array(items) => items.into_iter().map(|item| plain(item, depth)).collect(),
        Packed::Map(pairs) => pairs
            .into_iter()
            .map(|(key, value)| (key_text(key, depth), plain(value, depth)))
            .collect::<Map<_, _>>()
            .into(),
        Packed::Ext(code, bytes) => extension(code, &bytes, depth),
    }
}

fn key_text(key: Packed, depth: usize) -> String {
    match plain(key, depth) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The extensions of LangGraph's serializer: most are a packed list of module, name and arguments.
fn extension(code: i8, bytes: &[u8], depth: usize) -> Value {
    const DELTA_SNAPSHOT: i8 = 7;
    let raw = || json!({"$ext": code, "base64": BASE64.encode(bytes)});
    if depth >= DEPTH_MAX {
        return raw();
    }
    match unpacked(bytes, depth + 1) {
        Some(value) if code == DELTA_SNAPSHOT => json!({"$type": "delta_snapshot", "value": value}),
        Some(Value::Array(parts)) => match parts.as_slice() {
            [Value::String(module), Value::String(name), value, ..] => {
                json!({"$type": format!("{module}.{name}"), "value": value})
            }
            _ => raw(),
        },
        _ => raw(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(value: &Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    #[test]
    fn objects_are_shown_and_not_made() {
        let arguments = Packed::Array(vec!["os".into(), "system".into(), "rm -rf /".into()]);
        let value =
            Packed::Map(vec![("x".into(), Packed::Ext(0, packed(&arguments))), (1.into(), Packed::Nil)]);
        let shown = json(&Typed::new("msgpack", &packed(&value)));
        assert_eq!(shown, json!({"x": {"$type": "os.system", "value": "rm -rf /"}, "1": null}));
    }

    #[test]
    fn what_cannot_be_read_is_shown_as_bytes() {
        assert_eq!(
            json(&Typed::new("msgpack+aes", b"abc")),
            json!({"$format": "msgpack+aes", "base64": "YWJj"})
        );
        // Truncated MessagePack.
        assert_eq!(json(&Typed::new("msgpack", b"\xa3")), json!({"$format": "msgpack", "base64": "ow=="}));
        assert_eq!(json(&Typed::new("null", b"")), Value::Null);
    }

    #[test]
    fn deep_nesting_ends() {
        let mut value = Packed::Nil;
        for _ in 0..1_000 {
            value = Packed::Ext(7, packed(&value));
        }
        assert!(json(&Typed::new("msgpack", &packed(&value))).to_string().contains("$ext"));
    }
}
