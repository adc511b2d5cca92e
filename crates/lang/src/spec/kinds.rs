//! What each kind of node has of its own.

use std::num::NonZeroU32;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Definition, NodeSpec, is_default};

/// What a node does: the `type` field and the fields that belong to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KindSpec {
    Http(HttpSpec),
    Function(FunctionSpec),
    Command(CommandSpec),
    Transform(TransformSpec),
    Sleep(SleepSpec),
    Wait(WaitSpec),
    Hitl(HitlSpec),
    Map(MapSpec),
    Loop(LoopSpec),
    Workflow(WorkflowSpec),
}

impl KindSpec {
    /// Every value `type` can have.
    pub const NAMES: [&'static str; 10] =
        ["http", "function", "command", "transform", "sleep", "wait", "hitl", "map", "loop", "workflow"];

    /// The value of `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Function(_) => "function",
            Self::Command(_) => "command",
            Self::Transform(_) => "transform",
            Self::Sleep(_) => "sleep",
            Self::Wait(_) => "wait",
            Self::Hitl(_) => "hitl",
            Self::Map(_) => "map",
            Self::Loop(_) => "loop",
            Self::Workflow(_) => "workflow",
        }
    }

    /// The child workflow of a `map`, `loop` or `workflow`.
    pub fn body(&self) -> Option<&BodySpec> {
        match self {
            Self::Map(map) => Some(&map.body),
            Self::Loop(r#loop) => Some(&r#loop.body),
            Self::Workflow(workflow) => Some(&workflow.body),
            _ => None,
        }
    }

    pub(crate) fn body_mut(&mut self) -> Option<&mut BodySpec> {
        match self {
            Self::Map(map) => Some(&mut map.body),
            Self::Loop(r#loop) => Some(&mut r#loop.body),
            Self::Workflow(workflow) => Some(&mut workflow.body),
            _ => None,
        }
    }
}

/// Calls a URL. The output is `{status, headers, body}`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HttpSpec {
    /// What to send.
    pub request: RequestSpec,
    /// The statuses that count as success; any 2xx if not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("type" = ["array", "integer"]))]
    pub expect_status: Vec<u16>,
}

/// An HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequestSpec {
    /// `GET` if not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: MethodSpec,
    /// A template for the URL.
    pub url: String,
    /// Templates for the headers.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, Value>,
    /// Templates for the query parameters, appended to the URL; a null leaves its parameter out.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub query: IndexMap<String, Value>,
    /// A template for the body: text is sent as it is, anything else as JSON. Without it, a method with a body
    /// sends the node's `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum MethodSpec {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl MethodSpec {
    /// As it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// Calls a handler by name: one of the builtins `echo`, `fail`, `noop`, or one that a worker registered.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FunctionSpec {
    /// The handler's name, with a version if it has one (`enrich@2`). Workers that serve it get the task, and no others.
    pub function: String,
    /// A queue that workers take every task of, whichever function it calls: they claim `function.<queue>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

/// Runs a local program: the input as JSON on its standard input, the output as JSON on its standard output.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommandSpec {
    /// Templates for the program and its arguments.
    #[schemars(length(min = 1), extend("items" = { "type": ["string", "number", "boolean"] }))]
    pub command: Vec<String>,
    /// Templates for environment variables.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<String, Value>,
    /// A template for the directory to run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Computes a value from expressions alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TransformSpec {
    /// A template for the output; the node's `input` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// Waits for a time. Give `duration` or `until`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SleepSpec {
    /// How long: `30s`, or an expression that gives such a text or a number of seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Until when: a time such as `2026-01-31T12:00:00Z`, or an expression that gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Waits for a signal. The output is the signal's payload.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WaitSpec {
    /// A template for the signal's name.
    pub signal: String,
    /// What happens when `timeout` passes first; `fail` if not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_timeout: WaitTimeout,
}

/// What a `wait` does when its time is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitTimeout {
    /// The node fails with code `timeout`.
    #[default]
    Fail,
    /// The node succeeds with null.
    Continue,
}

/// Asks a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HitlSpec {
    /// A template for who decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// A template for what they are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What happens when `timeout` passes first; `reject` if not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_timeout: HitlTimeout,
}

/// What a `hitl` does when its time is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitlTimeout {
    /// As if it had been approved.
    Approve,
    /// As if it had been rejected.
    #[default]
    Reject,
    /// The node fails with code `timeout`.
    Fail,
}

/// Runs a child workflow for each element of a list. The output is the list of their outputs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MapSpec {
    /// A template that gives a list.
    pub items: Value,
    /// How many children may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// What a failed child means; `fail` if not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_item_error: ItemError,
    #[serde(flatten)]
    pub body: BodySpec,
}

/// What a failed child of a `map` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemError {
    /// The node fails, and the other children are cancelled.
    #[default]
    Fail,
    /// The other children go on; the failed one's place in the output is `null`.
    Continue,
}

/// Runs a child workflow again and again. The output is the last iteration's.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoopSpec {
    /// Checked after each iteration with `output` and `iteration` (from 1): true ends the loop.
    pub until: String,
    /// The node fails if the loop is not done by then; 100 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_iterations: Option<NonZeroU32>,
    #[serde(flatten)]
    pub body: BodySpec,
}

/// Runs a child workflow with the node's `input`. The output is the child's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct WorkflowSpec {
    #[serde(flatten)]
    pub body: BodySpec,
}

/// A child workflow. Give exactly one of `nodes`, `workflow`, `definition` and `file`.
///
/// A child sees its own `input` only, never the nodes of its parent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BodySpec {
    /// The child's nodes, written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<IndexMap<String, NodeSpec>>,
    /// With `nodes`: a template for the child's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The name of a workflow on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// With `workflow`: its version; the latest if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<NonZeroU32>,
    /// A whole workflow, written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<Definition>>,
    /// A file with a workflow, relative to this one; it is read when the workflow is submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}
