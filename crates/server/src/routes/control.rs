//! `/v1/runs/{run}/…`: cancel, pause, resume, retry, fork, signal.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_base::PatchOp;
use switchyard_runtime::{Fork, Principal};

use super::runs::{run_id, run_now};
use crate::ServerState;
use crate::api::{Api, Operation};
use crate::extract::{self, Body, OptionalBody, Segments, short};
use crate::openapi;
use crate::problem::Problem;

/// Limits on text that becomes part of a run's history.
pub(super) const NAME_BYTES_MAX: usize = 256;
pub(super) const REASON_BYTES_MAX: usize = 4 * 1024;

/// Who asks for it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByBody {
    /// For the run's history.
    by: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    /// For the run's history.
    by: Option<String>,
    reason: Option<String>,
    /// Undo what has succeeded, where nodes say how; true if not given.
    compensate: Option<bool>,
    /// End what workers hold of it at once, instead of giving them time to stop; false if not given. A run that is being
    /// closed already is ended by it.
    now: Option<bool>,
}

/// Where to fork from, and what to change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// This node and everything after it is done again.
    from: String,
    /// Instead of the old run's input.
    #[serde(default, deserialize_with = "given")]
    input: Option<Value>,
    /// Changes to the graph.
    #[serde(default)]
    edits: Vec<PatchOp>,
}

/// Deserialises a field that is present, so that null is `Some(Value::Null)`.
fn given<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(d).map(Some)
}

/// News for a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignalBody {
    /// Any JSON.
    #[serde(default)]
    payload: Value,
}

pub(super) fn register(api: &mut Api) {
    let by = api.schema::<ByBody>();
    let cancel = api.schema::<CancelBody>();
    let command = |operation: Operation, body: Value| {
        let operation = operation.body(body, false).problems([400, 404, 409]);
        operation.answer(200, "Done; where the run stands now", openapi::run_at())
    };
    let operation = api.operation("runs", "cancelRun", "Cancel a run").description(
        "Workers are told to stop what they hold of it. What has not stopped after `runs.stop_grace` is ended.",
    );
    api.post("/v1/runs/{run}/cancel", command(operation, cancel), cancel_run);
    let operation = api.operation("runs", "pauseRun", "Start no further node of a run until it is resumed");
    api.post("/v1/runs/{run}/pause", command(operation, by.clone()), pause_run);
    let operation = api.operation("runs", "resumeRun", "Take back a pause");
    api.post("/v1/runs/{run}/resume", command(operation, by.clone()), resume_run);
    let operation = api.operation("runs", "retryRun", "Start an ended run over from what failed");
    api.post("/v1/runs/{run}/retry", command(operation, by), retry_run);
    let signal = api.schema::<SignalBody>();
    let operation = api.operation("runs", "signalRun", "Send a signal to a run, for a `wait` node");
    api.post("/v1/runs/{run}/signals/{name}", command(operation, signal), signal_run);
    register_fork(api);
}

fn register_fork(api: &mut Api) {
    let body = api.schema::<ForkBody>();
    let forked = json!({
        "type": "object",
        "required": ["run_id", "status", "kept", "diff"],
        "properties": {
            "run_id": openapi::run_id(),
            "status": openapi::run_status(),
            "kept": { "type": "array", "items": { "type": "string" }, "description": "Nodes not done again" },
            "diff": { "type": "array", "items": { "type": "string" } },
        },
    });
    let operation = api
        .operation("runs", "forkRun", "A new run from a node of an old one")
        .body(body, true)
        .answer(202, "Accepted", forked)
        .problems([404, 409]);
    api.post("/v1/runs/{run}/fork", operation, fork_run);
}

/// The author that the run's history will show: `by` if given, otherwise the name of the caller's key.
pub(super) fn author(by: Option<&String>, caller: &Principal) -> Result<Principal, Problem> {
    let author = by.map_or_else(|| caller.clone(), |name| caller.on_behalf_of(name.as_str()));
    short("by", author.name(), NAME_BYTES_MAX)?;
    Ok(author)
}

async fn cancel_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<CancelBody>,
) -> Result<Json<Value>, Problem> {
    let run = run_id(&run)?;
    let reason = short("reason", body.reason.as_deref().unwrap_or_default(), REASON_BYTES_MAX)?;
    let compensate = body.compensate.unwrap_or(true);
    let (by, now) = (author(body.by.as_ref(), &caller)?, body.now.unwrap_or(false));
    state.engine.cancel(&by, run, &operation, reason, compensate, now).await?;
    run_now(&state, run).await
}

async fn pause_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<ByBody>,
) -> Result<Json<Value>, Problem> {
    let run = run_id(&run)?;
    state.engine.pause(&author(body.by.as_ref(), &caller)?, run, &operation).await?;
    run_now(&state, run).await
}

async fn resume_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<ByBody>,
) -> Result<Json<Value>, Problem> {
    let run = run_id(&run)?;
    state.engine.resume(&author(body.by.as_ref(), &caller)?, run, &operation).await?;
    run_now(&state, run).await
}

async fn retry_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<ByBody>,
) -> Result<Json<Value>, Problem> {
    let run = run_id(&run)?;
    state.engine.retry(&author(body.by.as_ref(), &caller)?, run, &operation).await?;
    run_now(&state, run).await
}

async fn signal_run(
    State(state): State<ServerState>,
    Segments((run, name)): Segments<(String, String)>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<SignalBody>,
) -> Result<Json<Value>, Problem> {
    let run = run_id(&run)?;
    let name = short("name", &name, NAME_BYTES_MAX)?;
    state.engine.signal(&caller, run, &operation, name, &body.payload).await?;
    run_now(&state, run).await
}

async fn fork_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    Body(body): Body<ForkBody>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let (run, from) = (run_id(&run)?, body.from.into());
    let fork = Fork { run, operation, from, input: body.input, edits: body.edits };
    let forked = state.engine.fork(&caller, fork).await?;
    let Json(mut answer) = run_now(&state, forked.run).await?;
    answer["kept"] = json!(forked.kept);
    answer["diff"] = json!(forked.diff);
    Ok((StatusCode::ACCEPTED, Json(answer)))
}
