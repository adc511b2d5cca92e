//! `/v1/queues`: what waits for workers.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::ServerState;
use crate::api::Api;
use crate::openapi;
use crate::problem::Problem;

pub(super) fn register(api: &mut Api) {
    let depth = json!({
        "type": "object",
        "required": ["queue", "high", "normal", "low"],
        "properties": {
            "queue": { "type": "string", "description": "The type of task" },
            "high": { "type": "integer" },
            "normal": { "type": "integer" },
            "low": { "type": "integer" },
        },
    });
    let list = api
        .operation("workers", "listQueues", "Tasks that wait for a worker, by type and priority")
        .answer(200, "The queues", openapi::list("queues", depth));
    api.get("/v1/queues", list, queues);
}

async fn queues(State(state): State<ServerState>) -> Result<Json<Value>, Problem> {
    let depths = state.engine.hot().queues().await?;
    Ok(Json(json!({ "queues": depths })))
}
