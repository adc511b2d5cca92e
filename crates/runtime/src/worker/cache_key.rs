//! The cache key of a node's result: a hash of the node and of all values that it acts on.
//!
//! Keys are stored, so their encoding is explicit and has a version. A key of another version is a cache miss, which
//! costs one execution: nothing looks for older forms.

use serde::Serialize;
use serde_json::Value;
use switchyard_core::run::{Reading, Task};
use switchyard_core::{Hash, Payload};

/// The version of [`Encoding`].
const VERSION: u32 = 2;

/// The JSON that is hashed. Another field, name or order is another version.
#[derive(Serialize)]
struct Encoding<'a> {
    version: u32,
    node: &'a str,
    fingerprint: String,
    acts_on: ActsOn<'a>,
}

/// The values that a node's result depends on.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActsOn<'a> {
    /// The node's `cache.key`, or its rendered fields.
    Value(Value),
    /// All inputs and outputs that the node can read.
    Scope { input: &'a Payload, nodes: Vec<ReadNode<'a>> },
}

/// A node whose results the cached node reads, with all fields that expressions can see.
#[derive(Serialize)]
pub(super) struct ReadNode<'a> {
    node: &'a str,
    state: &'static str,
    output: &'a Payload,
    error: Option<ReadError<'a>>,
}

#[derive(Serialize)]
struct ReadError<'a> {
    code: &'a str,
    message: &'a str,
}

impl<'a> ActsOn<'a> {
    pub(super) fn all_of(task: &'a Task) -> Self {
        Self::Scope { input: &task.input, nodes: task.reads.iter().map(ReadNode::of).collect() }
    }
}

impl<'a> ReadNode<'a> {
    fn of(read: &'a Reading) -> Self {
        let error = read.error.as_ref().map(|error| ReadError { code: &error.code, message: &error.message });
        Self { node: &read.node, state: read.state.as_str(), output: &read.output, error }
    }
}

pub(super) fn digest(node: &str, fingerprint: u64, acts_on: ActsOn<'_>) -> String {
    Hash::of(&encoded(node, fingerprint, acts_on)).hex()
}

fn encoded(node: &str, fingerprint: u64, acts_on: ActsOn<'_>) -> Vec<u8> {
    let fingerprint = format!("{fingerprint:016x}");
    // Numbers, text and JSON always serialise.
    serde_json::to_vec(&Encoding { version: VERSION, node, fingerprint, acts_on }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use switchyard_core::run::NodeState;
    use switchyard_core::{CasRef, NodeError};

    use super::*;

    #[test]
    fn the_encoding_of_a_value_stays_as_it_is() {
        let value = || ActsOn::Value(json!({"url": "http://x/1"}));
        let text = r#"{"version":2,"node":"fetch","fingerprint":"00000000000000ff","acts_on":{"value":{"url":"http://x/1"}}}"#;
        assert_eq!(String::from_utf8(encoded("fetch", 0xff, value())).unwrap(), text);
        assert_eq!(
            digest("fetch", 0xff, value()),
            "d24d2c965cbad53753e391295a322e1f515821dceb8f258621a01472fdf0769f"
        );
    }

    #[test]
    fn the_encoding_of_a_scope_stays_as_it_is() {
        let input = Payload::from_value(&json!([1, 2.5]));
        let failed = NodeError::retryable("http_status", "it said 500");
        let reads = [
            Reading {
                node: "a".into(),
                state: NodeState::Succeeded,
                output: Payload::Cas(CasRef { hash: Hash([2; 32]), bytes: 70_000 }),
                error: None,
            },
            Reading {
                node: "b".into(),
                state: NodeState::Failed,
                output: Payload::null(),
                error: Some(Arc::new(failed)),
            },
        ];
        let scope = ActsOn::Scope { input: &input, nodes: reads.iter().map(ReadNode::of).collect() };
        let expected = [
            r#"{"version":2,"node":"gather","fingerprint":"00000000000000ff","acts_on":{"scope":{"input":{"json":[1,2.5]},"#,
            r#""nodes":[{"node":"a","state":"succeeded","output":{"cas":{"hash":"sha256:"#,
            &"02".repeat(32),
            r#"","bytes":70000}},"error":null},{"node":"b","state":"failed","output":{"json":null},"#,
            r#""error":{"code":"http_status","message":"it said 500"}}]}}}"#,
        ];
        assert_eq!(String::from_utf8(encoded("gather", 0xff, scope)).unwrap(), expected.concat());
    }
}
