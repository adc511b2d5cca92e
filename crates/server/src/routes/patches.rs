//! `/v1/runs/{run}/patches`: changes to the graph of a run in progress.

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_base::PatchOp;
use switchyard_core::PatchId;
use switchyard_runtime::{PatchReport, PatchRequest, Principal};

use super::control::{REASON_BYTES_MAX, author};
use super::runs::run_id;
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Operation, OptionalBody, Segments, short};
use crate::openapi;
use crate::problem::Problem;

/// A change to the graph of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PatchBody {
    /// Applied in order: all of them or none.
    ops: Vec<PatchOp>,
    /// The version of the graph that its author looked at; the newest, if not given.
    seen: Option<u32>,
    /// Who makes it, for the run's history.
    by: Option<String>,
    /// Why, for the run's history.
    #[serde(default)]
    reason: String,
    /// Only say what would happen.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UndoBody {
    /// Who takes it back, for the run's history.
    by: Option<String>,
    /// Only say what would happen.
    #[serde(default)]
    dry_run: bool,
}

pub(super) fn register(api: &mut Api) {
    let list = api
        .operation("patches", "listPatches", "The patches of a run, oldest first")
        .answer(200, "The patches", openapi::list("patches", openapi::patch()))
        .problems([400, 404]);
    api.get("/v1/runs/{run}/patches", list, list_patches);
    let body = api.schema::<PatchBody>();
    let make = api
        .operation("patches", "patchRun", "Change the graph of a run under way")
        .body(body, true)
        .answer(200, "What changed, or would change", openapi::patch_report())
        .problems([404, 409]);
    api.post("/v1/runs/{run}/patches", make, patch_run);
    let body = api.schema::<UndoBody>();
    let undo = api
        .operation(
            "patches",
            "undoPatch",
            "Take a patch back, as long as nothing that it touched has started",
        )
        .body(body, false)
        .answer(200, "What changed, or would change", openapi::patch_report())
        .problems([404, 409]);
    api.post("/v1/runs/{run}/patches/{patch}/undo", undo, undo_patch);
}

async fn list_patches(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
) -> Result<Json<Value>, Problem> {
    let run = state.engine.state(run_id(&run)?).await?;
    let patches = state.engine.history().patches(&run).await?;
    Ok(Json(json!({ "patches": patches })))
}

async fn patch_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    Body(body): Body<PatchBody>,
) -> Result<Json<PatchReport>, Problem> {
    let author = author(body.by.as_ref(), &caller)?;
    let request = PatchRequest {
        run: run_id(&run)?,
        ops: body.ops,
        seen: body.seen,
        operation,
        reason: short("reason", &body.reason, REASON_BYTES_MAX)?.into(),
        dry_run: body.dry_run,
    };
    Ok(Json(state.engine.patch(&author, request).await?))
}

async fn undo_patch(
    State(state): State<ServerState>,
    Segments((run, patch)): Segments<(String, String)>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<UndoBody>,
) -> Result<Json<PatchReport>, Problem> {
    let author = author(body.by.as_ref(), &caller)?;
    let (run, patch) = (run_id(&run)?, PatchId::new(patch));
    let report = state.engine.undo_patch(&author, run, &patch, operation, body.dry_run).await?;
    Ok(Json(report))
}
