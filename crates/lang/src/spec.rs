//! A workflow as its author wrote it, defaults not filled in.
//!
//! The doc comments of the fields are the descriptions in the published JSON Schema, so they speak to authors.
//! Reading is in [`crate::decode`]; this module only says what there is, and writes it back: what serialises here
//! is the canonical form that is hashed and stored, so a field at its default must not be written.

use std::num::NonZeroU32;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use switchyard_base::HumanDuration;

mod kinds;

pub use kinds::*;

/// A workflow: a graph of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Definition {
    /// What the workflow is called: letters, digits, `_`, `-`, `.` and `/`, at most 128 of them.
    pub name: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a run's input must look like: a JSON Schema, draft 2020-12. Defaults of properties are filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The draft of `input`. Filled in when the workflow is accepted; there is no need to write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_draft: Option<InputDraft>,
    /// The nodes by id. An id is a letter or `_`, then letters, digits, `_` and `-`, at most 64 in all.
    pub nodes: IndexMap<String, NodeSpec>,
    /// A template for the run's output. Without it the output is that of the last nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// How long a run may take in all before it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<HumanDuration>,
    /// How many nodes of one run may be active at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<NonZeroU32>,
    /// How many runs with the same key may be active at once; the others wait their turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<ConcurrencySpec>,
    /// Words to find runs by, at most 16: `team: search`. A value is a template over `input`. Labels that are given at
    /// submission win over these.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// Runs that a run of this workflow starts have its labels, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inherit_labels: bool,
}

/// The rules of an input schema. A stored definition without them has those of before there was a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum InputDraft {
    #[serde(rename = "2020-12")]
    Draft202012,
}

/// A key and a cap for the runs that share it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConcurrencySpec {
    /// A template over `input`, such as `tenant-${{ input.tenant }}`.
    pub key: String,
    /// How many runs with one key may be active at once.
    pub limit: NonZeroU32,
}

/// One node: what it does ([`KindSpec`]) and how it is treated ([`CommonSpec`]), in one flat map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeSpec {
    #[serde(flatten)]
    pub kind: KindSpec,
    #[serde(flatten)]
    pub common: CommonSpec,
}

/// The fields every kind of node has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CommonSpec {
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The nodes that must have ended before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("type" = ["array", "string", "null"]))]
    pub needs: Vec<String>,
    /// A condition; if it is false, the node is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["string", "boolean"]))]
    pub when: Option<String>,
    /// Whether to start when all needs have ended, or when the first has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub join: JoinSpec,
    /// A template for what the node is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// When to try again. Without it a node has one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySpec>,
    /// How long one attempt may take (for `wait` and `hitl`: how long to wait).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// 1 (last) to 10 (first); 5 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub priority: Option<u8>,
    /// Keep the output and reuse it for the same input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheSpec>,
    /// What a failure of this node means for the run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_error: OnErrorSpec,
    /// What undoes this node if the run fails after it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensate: Option<Box<CompensateSpec>>,
}

/// When a node with several needs starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JoinSpec {
    /// When every need has ended.
    #[default]
    All,
    /// When the first need has succeeded.
    Any,
}

/// When a failed attempt is tried again. An empty `retry: {}` is three attempts with exponential backoff.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RetrySpec {
    /// How many attempts in all, the first included; 3 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<NonZeroU32>,
    /// How the delay grows; `exponential` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffSpec>,
    /// The delay before the second attempt; 1s if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<HumanDuration>,
    /// The longest delay; 60s if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<HumanDuration>,
    /// Spread the delays, so that many failures do not come back at one moment; on if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// Error codes that are not worth another attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
}

/// How the delay between attempts grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackoffSpec {
    /// Doubles each time.
    #[default]
    Exponential,
    /// Grows by `initial` each time.
    Linear,
    /// Stays the same.
    Fixed,
}

/// How long an output may be reused.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CacheSpec {
    /// How long an entry is good for.
    pub ttl: HumanDuration,
    /// A template for the key; the node's rendered input if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Value>,
}

/// What a failed node means for its run, once its retries are used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnErrorSpec {
    /// The run fails.
    #[default]
    Fail,
    /// The run goes on as if the node had succeeded; its error can be read as `nodes.<id>.error`.
    Continue,
    /// The run goes on at this node, and the nodes that need the failed one are skipped.
    Goto(String),
}

/// A node that undoes another: any kind, but with no place of its own in the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompensateSpec {
    #[serde(flatten)]
    pub kind: KindSpec,
    #[serde(flatten)]
    pub common: CompensateCommon,
}

/// The common fields that make sense for a compensation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompensateCommon {
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A template for what the compensation is given; it may read the node it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// When to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySpec>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// 1 (last) to 10 (first); 5 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub priority: Option<u8>,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
