//! The OpenAPI document, and hand-written schemas for the documents that routes build without a `JsonSchema` type.

use serde_json::{Value, json};

use crate::routes;

/// The OpenAPI 3.1 document of all routes of [`router`](crate::router).
pub fn document() -> Value {
    routes::api().finish().1
}

pub(crate) fn run_id() -> Value {
    json!({ "type": "string", "pattern": "^run_[0-7][0-9a-hjkmnp-tv-z]{25}$" })
}

pub(crate) fn moment() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

pub(crate) fn moment_or_null() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

/// A schema that also allows null.
pub(crate) fn maybe(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

pub(crate) fn run_status() -> Value {
    let names: Vec<&str> = switchyard_core::run::RunStatus::ALL
        .into_iter()
        .map(switchyard_core::run::RunStatus::as_str)
        .collect();
    json!({ "type": "string", "enum": names })
}

/// The id and the status of a run.
pub(crate) fn run_at() -> Value {
    json!({
        "type": "object",
        "required": ["run_id", "status"],
        "properties": { "run_id": run_id(), "status": run_status() },
    })
}

/// [`switchyard_store::RunRecord`].
pub(crate) fn run_record() -> Value {
    json!({
        "type": "object",
        "required": ["run_id", "workflow", "definition", "status", "accepted_at", "last_seq"],
        "properties": {
            "run_id": run_id(),
            "workflow": { "type": "string" },
            "workflow_version": { "type": ["integer", "null"] },
            "definition": { "type": "string", "description": "The hash of its definition" },
            "status": run_status(),
            "accepted_at": moment(),
            "ended_at": moment_or_null(),
            "parent": { "type": ["string", "null"] },
            "parent_node": { "type": "string", "description": "The node of its parent that started it" },
            "schedule": { "type": "string", "description": "The schedule that started it" },
            "labels": labels(),
            "error": { "type": ["object", "null"] },
            "last_seq": { "type": "integer", "description": "The number of its newest event" },
        },
    })
}

pub(crate) fn labels() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// [`switchyard_api::RunPage`].
pub(crate) fn run_page() -> Value {
    let mut page = page("runs", run_record());
    page["properties"]["count"] = run_count();
    page
}

/// [`switchyard_api::RunCountView`].
pub(crate) fn run_count() -> Value {
    json!({
        "type": "object",
        "required": ["runs", "more"],
        "description": "Of all pages, where it was asked for",
        "properties": {
            "runs": { "type": "integer" },
            "more": { "type": "boolean", "description": "There are more: counting stopped" },
        },
    })
}

/// [`switchyard_runtime::RunView`].
pub(crate) fn run_view() -> Value {
    json!({
        "type": "object",
        "required": ["run_id", "status", "workflow", "definition", "version", "last_seq", "nodes"],
        "properties": {
            "run_id": run_id(),
            "status": run_status(),
            "workflow": { "type": "string" },
            "definition": { "type": "string", "description": "The hash of its definition" },
            "version": { "type": "integer", "description": "Of the graph: one more than its patches" },
            "attempt": { "type": "integer" },
            "last_seq": { "type": "integer", "description": "The number of its newest event" },
            "accepted_at": moment(),
            "start_at": moment(),
            "priority": { "type": "integer", "minimum": 1, "maximum": 10 },
            "ended_at": moment_or_null(),
            "parent": { "type": ["string", "null"] },
            "parent_node": { "type": "string", "description": "The node of its parent that started it" },
            "schedule": { "type": "string", "description": "The schedule that started it" },
            "labels": labels(),
            "forked_from": { "type": ["string", "null"] },
            "input": { "description": "Any JSON" },
            "output": { "description": "Any JSON" },
            "error": { "type": ["object", "null"] },
            "nodes": { "type": "object", "description": "By id: status, attempts, times, output, error" },
            "patches": { "type": "array", "items": patch() },
            "waiting": {
                "type": "array",
                "description": "What it waits for at this moment; missing if that is nothing",
                "items": wait_reason(),
            },
            "missing": {
                "type": "array",
                "description": "Large values that are gone or damaged. In their places stand `cas` and `bytes`",
                "items": missing_payload(),
            },
        },
    })
}

/// [`switchyard_api::WaitReason`].
pub(crate) fn wait_reason() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "required": ["for"],
        "properties": {
            "for": {
                "enum": [
                    "timer", "retry", "signal", "approval", "children", "start", "concurrency_key", "resume", "queue",
                    "worker",
                ],
                "description": "`queue`: a free slot of a worker. `worker`: no worker that is alive serves the queue",
            },
            "node": text("The node that waits"),
            "until": moment(),
            "at": moment(),
            "name": text("Of the signal"),
            "approval": text("Its id"),
            "approver": { "type": ["string", "null"] },
            "open": { "type": "integer", "description": "Runs that have not ended" },
            "count": { "type": "integer", "description": "Runs that the node starts" },
            "key": text("The concurrency key"),
            "queue": text("The queue that the node lies in, such as `function:enrich`"),
        },
    })
}

/// [`switchyard_api::MissingPayload`].
fn missing_payload() -> Value {
    json!({
        "type": "object",
        "required": ["path", "payload", "bytes", "reason"],
        "properties": {
            "path": { "type": "string", "description": "Its place in the document, such as `nodes.fetch.output`" },
            "payload": { "type": "string", "description": "`cas://sha256:…`" },
            "bytes": { "type": "integer" },
            "reason": { "type": "string" },
        },
    })
}

/// [`switchyard_core::run::Patched`].
pub(crate) fn patch() -> Value {
    json!({
        "type": "object",
        "required": ["patch", "version", "author", "reason", "diff"],
        "properties": {
            "patch": { "type": "string" },
            "version": { "type": "integer", "description": "Of the graph that it made" },
            "definition": { "type": "string" },
            "author": { "type": "string" },
            "reason": { "type": "string" },
            "ops": { "description": "The operations as they were sent" },
            "diff": { "type": "array", "items": { "type": "string" } },
            "undoes": { "type": "string" },
        },
    })
}

/// [`switchyard_runtime::PatchReport`].
pub(crate) fn patch_report() -> Value {
    json!({
        "type": "object",
        "required": ["patch", "version", "diff"],
        "properties": {
            "patch": { "type": ["string", "null"], "description": "Its id; null for a dry run" },
            "version": { "type": "integer", "description": "Of the graph that it makes, or would make" },
            "diff": { "type": "array", "items": { "type": "string" } },
        },
    })
}

/// [`switchyard_store::ApprovalRecord`].
pub(crate) fn approval() -> Value {
    json!({
        "type": "object",
        "required": ["approval", "run", "node", "status", "payload", "created_at"],
        "properties": {
            "approval": { "type": "string" },
            "run": run_id(),
            "node": { "type": "string" },
            "status": { "type": "string", "enum": ["pending", "approved", "rejected", "timed_out", "cancelled"] },
            "approver": { "type": ["string", "null"] },
            "prompt": { "type": ["string", "null"] },
            "payload": { "description": "What the person is shown: any JSON" },
            "created_at": moment(),
            "timeout_at": moment_or_null(),
            "decided_at": moment_or_null(),
            "decided_by": { "type": ["string", "null"] },
            "comment": { "type": ["string", "null"] },
        },
    })
}

/// [`switchyard_store::WorkflowRecord`].
pub(crate) fn workflow() -> Value {
    json!({
        "type": "object",
        "required": ["name", "version", "definition", "created_at"],
        "properties": {
            "name": { "type": "string" },
            "version": { "type": "integer" },
            "definition": { "type": "string", "description": "The hash of its definition" },
            "created_at": moment(),
        },
    })
}

/// [`switchyard_store::ApiKeyRecord`].
pub(crate) fn api_key() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "created_at", "revoked_at"],
        "properties": {
            "id": { "type": "string" },
            "name": { "type": "string" },
            "created_at": moment(),
            "revoked_at": moment_or_null(),
        },
    })
}

/// A schedule with its next start and its last run.
pub(crate) fn schedule() -> Value {
    json!({
        "type": "object",
        "required": ["name", "workflow", "input", "cron", "time_zone", "jitter", "overlap", "catch_up", "paused", "next_at"],
        "properties": {
            "name": { "type": "string" },
            "workflow": { "type": "string" },
            "version": { "type": "integer", "description": "Of the workflow; not there if it is the newest" },
            "input": { "description": "Any JSON" },
            "cron": { "type": "string", "description": "One expression a line" },
            "time_zone": { "type": "string" },
            "jitter": { "type": "string" },
            "overlap": { "type": "string", "enum": ["skip", "queue", "allow"] },
            "catch_up": { "type": "string", "enum": ["skip", "last", "all"] },
            "paused": { "type": "boolean" },
            "labels": labels(),
            "next_at": moment_or_null(),
            "last_run": { "type": ["string", "null"], "description": "The run that it started last" },
        },
    })
}

/// The outcome of a tick of a schedule.
pub(crate) fn schedule_start() -> Value {
    json!({
        "type": "object",
        "required": ["tick", "at", "tries", "outcome", "run_id", "error", "by"],
        "properties": {
            "tick": moment(),
            "at": { "type": "string", "format": "date-time", "description": "When it was tried, the last time" },
            "tries": { "type": "integer", "minimum": 1 },
            "outcome": { "type": "string", "enum": ["started", "skipped", "failed"] },
            "run_id": { "type": ["string", "null"], "description": "The run that was started" },
            "error": { "type": ["string", "null"], "description": "Why no run was started" },
            "by": { "type": ["string", "null"], "description": "The caller that started it, if the schedule did not" },
        },
    })
}

/// One event of a run, see `wire`.
pub(crate) fn event() -> Value {
    json!({
        "type": "object",
        "required": ["seq", "at", "type", "run_id"],
        "properties": {
            "seq": { "type": "integer", "minimum": 1 },
            "at": moment(),
            "type": { "type": "string", "description": "Such as `node_succeeded` or `run_ended`" },
            "run_id": run_id(),
            "node": { "type": "string", "description": "The node it is about, if it is about one" },
        },
        "additionalProperties": true,
    })
}

/// `{"<name>": [items], "next": cursor}`.
pub(crate) fn page(name: &str, items: Value) -> Value {
    json!({
        "type": "object",
        "required": [name, "next"],
        "properties": {
            name: { "type": "array", "items": items },
            "next": { "type": ["string", "null"], "description": "The cursor of the next page" },
        },
    })
}

/// The schema of a list entry, which lacks the field named by `payload`.
pub(crate) fn listed(mut schema: Value, payload: &str) -> Value {
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| name != payload);
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.remove(payload);
    }
    schema
}

/// `{"<name>": [items]}`.
pub(crate) fn list(name: &str, items: Value) -> Value {
    json!({
        "type": "object",
        "required": [name],
        "properties": { name: { "type": "array", "items": items } },
    })
}
