//! `/v1/bulk`: one action on every run that matches a filter; `/v1/tombstones`: records of deleted runs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_api::BulkResultPage;
use switchyard_core::RunId;
use switchyard_runtime::Principal;
use switchyard_store::{BulkAction, RunFilter};

use super::control::{REASON_BYTES_MAX, author};
use super::runs::{page_size, run_id};
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Operation, OptionalBody, Params, Segments, short};
use crate::openapi;
use crate::problem::Problem;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// What to do to which runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BulkBody {
    action: ActionName,
    /// The conditions of the filter, such as `status=failed label=team=search created_after=24h`.
    filter: String,
    /// Only say how many runs there are, and show a few; nothing is changed.
    #[serde(default)]
    dry_run: bool,
    /// For the runs' histories, or the tombstones.
    by: Option<String>,
    /// Of `cancel` and `delete`.
    reason: Option<String>,
    /// Of `cancel`: undo what has succeeded; true if not given.
    compensate: Option<bool>,
    /// Of `cancel`: end what workers hold at once.
    now: Option<bool>,
    /// Of `fork`: this node and everything after it is done again; the node that the run failed at, if not given.
    from: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ActionName {
    Cancel,
    Pause,
    Resume,
    Retry,
    Fork,
    Delete,
}

impl BulkBody {
    fn action(&self) -> Result<BulkAction, Problem> {
        let reason = short("reason", self.reason.as_deref().unwrap_or_default(), REASON_BYTES_MAX)?;
        Ok(match self.action {
            ActionName::Cancel => BulkAction::Cancel {
                reason: reason.into(),
                compensate: self.compensate.unwrap_or(true),
                now: self.now.unwrap_or(false),
            },
            ActionName::Pause => BulkAction::Pause,
            ActionName::Resume => BulkAction::Resume,
            ActionName::Retry => BulkAction::Retry,
            ActionName::Fork => BulkAction::Fork { from: self.from.as_deref().map(Into::into) },
            ActionName::Delete => BulkAction::Delete { reason: reason.into() },
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// At most this many, 1 to 1,000; 100 if not given.
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResultsQuery {
    /// `next` of the page before.
    after: Option<String>,
    /// At most this many, 1 to 1,000; 100 if not given.
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteBody {
    /// For the tombstone.
    by: Option<String>,
    /// For the tombstone.
    reason: Option<String>,
}

pub(super) fn register(api: &mut Api) {
    let body = api.schema::<BulkBody>();
    let start = api
        .operation("bulk", "startBulk", "Do something to every run that a filter finds")
        .description(
            "The job is durable: it is worked off a page at a time, also after a restart, and each action takes effect once. \
             Runs that are created after the job are left alone. With `dry_run` nothing is changed, and the answer is 200.",
        )
        .body(body, true)
        .answer(202, "The job", job())
        .answer(200, "How many runs a job would work on, and a few of them", preview())
        .problems([400]);
    api.post("/v1/bulk", start, start_bulk);
    let list = api
        .operation("bulk", "listBulk", "Bulk jobs, newest first")
        .query::<ListQuery>()
        .answer(200, "The jobs", openapi::list("jobs", job()))
        .problems([400]);
    api.get("/v1/bulk", list, list_bulk);
    let show = api
        .operation("bulk", "showBulk", "A bulk job and how far it has come")
        .answer(200, "The job", job())
        .problems([404]);
    api.get("/v1/bulk/{job}", show, show_bulk);
    let stop = api
        .operation("bulk", "stopBulk", "Stop a bulk job; what it has done stays done")
        .answer(200, "The job", job())
        .problems([404]);
    api.post("/v1/bulk/{job}/stop", stop, stop_bulk);
    let results = api
        .operation("bulk", "bulkResults", "What a bulk job came to, run by run")
        .query::<ResultsQuery>()
        .answer(200, "A page of results", openapi::page("results", result()))
        .problems([400, 404]);
    api.get("/v1/bulk/{job}/results", results, bulk_results);
    register_deletion(api);
}

fn register_deletion(api: &mut Api) {
    let body = api.schema::<DeleteBody>();
    let delete = api
        .operation("runs", "deleteRun", "Delete a run that has ended, with the runs that it started")
        .description(
            "Its events, approvals, labels and dead letters go now; its payloads go after the grace period of retention, if \
             nothing else mentions them. A tombstone keeps who deleted it. A repetition answers the same.",
        )
        .body(body, false)
        .answer(200, "What is left of it", tombstone())
        .problems([400, 404, 409]);
    api.delete("/v1/runs/{run}", delete, delete_run);
    let list = api
        .operation("runs", "listTombstones", "Runs that were deleted, the latest deletions first")
        .query::<ListQuery>()
        .answer(200, "The tombstones", openapi::list("tombstones", tombstone()))
        .problems([400]);
    api.get("/v1/tombstones", list, list_tombstones);
}

fn job() -> Value {
    let count = || json!({ "type": "integer" });
    json!({
        "type": "object",
        "required": ["id", "action", "filter", "by", "created_at", "status", "counts"],
        "properties": {
            "id": { "type": "string" },
            "action": {
                "type": "object",
                "required": ["do"],
                "properties": { "do": { "enum": ["cancel", "pause", "resume", "retry", "fork", "delete"] } },
            },
            "filter": { "type": "string", "description": "With its times written out" },
            "by": { "type": "string" },
            "created_at": openapi::moment(),
            "status": { "type": "string", "enum": ["running", "done", "stopped"] },
            "ended_at": openapi::moment_or_null(),
            "cursor": openapi::maybe(openapi::run_id()),
            "counts": {
                "type": "object",
                "required": ["done", "skipped", "failed"],
                "properties": { "done": count(), "skipped": count(), "failed": count() },
            },
        },
    })
}

fn preview() -> Value {
    json!({
        "type": "object",
        "required": ["dry_run", "filter", "count", "sample"],
        "properties": {
            "dry_run": { "type": "boolean" },
            "filter": { "type": "string" },
            "count": openapi::run_count(),
            "sample": { "type": "array", "items": openapi::run_record() },
        },
    })
}

fn result() -> Value {
    json!({
        "type": "object",
        "required": ["run_id", "outcome"],
        "properties": {
            "run_id": openapi::run_id(),
            "outcome": { "type": "string", "enum": ["done", "skipped", "failed"] },
            "detail": { "type": "string", "description": "Why not, or the run that a fork made" },
        },
    })
}

fn tombstone() -> Value {
    json!({
        "type": "object",
        "required": ["run_id", "workflow", "status", "deleted_at", "deleted_by", "reason", "children"],
        "properties": {
            "run_id": openapi::run_id(),
            "workflow": { "type": "string" },
            "status": openapi::run_status(),
            "deleted_at": openapi::moment(),
            "deleted_by": { "type": "string" },
            "reason": { "type": "string" },
            "children": { "type": "integer", "description": "Runs that went with it" },
        },
    })
}

async fn start_bulk(
    State(state): State<ServerState>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    Body(body): Body<BulkBody>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let now = state.engine.clock().now();
    let filter = RunFilter::parse(&body.filter, now).map_err(|bad| {
        Problem::unprocessable("invalid_filter", bad).hint("such as `status=failed created_after=24h`")
    })?;
    if body.dry_run {
        let preview = state.engine.history().bulk_preview(&filter).await?;
        return Ok((StatusCode::OK, Json(serde_json::to_value(preview)?)));
    }
    let by = author(body.by.as_ref(), &caller)?;
    let job = state.engine.start_bulk(&by, &operation, body.action()?, &filter).await?;
    Ok((StatusCode::ACCEPTED, Json(serde_json::to_value(job)?)))
}

async fn list_bulk(
    State(state): State<ServerState>,
    Params(query): Params<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = page_size(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    Ok(Json(json!({ "jobs": state.engine.history().bulk_jobs(limit).await? })))
}

async fn show_bulk(
    State(state): State<ServerState>,
    Segments(job): Segments<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(serde_json::to_value(state.engine.history().bulk_job(&job).await?)?))
}

async fn stop_bulk(
    State(state): State<ServerState>,
    Segments(job): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
) -> Result<Json<Value>, Problem> {
    state.engine.history().bulk_job(&job).await?;
    let job = state.engine.stop_bulk(&caller, &operation, &job).await?;
    Ok(Json(serde_json::to_value(job)?))
}

async fn bulk_results(
    State(state): State<ServerState>,
    Segments(job): Segments<String>,
    Params(query): Params<ResultsQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = page_size(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    let after = query.after.as_deref().map(run_id).transpose()?;
    let history = state.engine.history();
    history.bulk_job(&job).await?;
    let results = history.bulk_results(&job, after, limit).await?;
    let next: Option<RunId> = results.last().filter(|_| results.len() == limit).map(|last| last.run_id);
    Ok(Json(serde_json::to_value(BulkResultPage { results, next })?))
}

async fn delete_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<DeleteBody>,
) -> Result<Json<Value>, Problem> {
    let run = run_id(&run)?;
    let reason = short("reason", body.reason.as_deref().unwrap_or_default(), REASON_BYTES_MAX)?;
    let by = author(body.by.as_ref(), &caller)?;
    let tombstone = state.engine.delete_run(&by, run, &operation, reason).await?;
    Ok(Json(serde_json::to_value(tombstone)?))
}

async fn list_tombstones(
    State(state): State<ServerState>,
    Params(query): Params<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = page_size(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    Ok(Json(json!({ "tombstones": state.engine.history().tombstones(limit).await? })))
}
