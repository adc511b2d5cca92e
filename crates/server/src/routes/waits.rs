//! `/v1/runs/{run}/waits`: the reasons why a run waits.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use switchyard_api::RunWaits;

use super::runs::run_id;
use crate::ServerState;
use crate::api::Api;
use crate::extract::Segments;
use crate::openapi;
use crate::problem::Problem;

pub(super) fn register(api: &mut Api) {
    let waits = json!({
        "type": "object",
        "required": ["run_id", "status", "waits"],
        "properties": {
            "run_id": openapi::run_id(),
            "status": openapi::run_status(),
            "waits": { "type": "array", "items": openapi::wait_reason() },
        },
    });
    let show = api
        .operation("runs", "showWaits", "What a run waits for at this moment")
        .description("Empty for a run that has ended, or whose nodes are all being executed.")
        .answer(200, "The reasons", waits)
        .problems([400, 404]);
    api.get("/v1/runs/{run}/waits", show, show_waits);
}

async fn show_waits(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
) -> Result<Json<RunWaits>, Problem> {
    Ok(Json(state.engine.waits(run_id(&run)?).await?))
}
