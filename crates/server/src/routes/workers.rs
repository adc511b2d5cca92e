//! `/v1/workers`: the workers, and the functions that each of them serves.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use switchyard_api::WorkersView;

use crate::ServerState;
use crate::api::Api;
use crate::openapi;
use crate::problem::Problem;

pub(super) fn register(api: &mut Api) {
    let list = api
        .operation("workers", "listWorkers", "Workers, and what each serves")
        .description(
            "Those that were heard of within a day: of Switchyard processes, over HTTP, and plain ones that read Redis \
             by themselves.",
        )
        .answer(200, "The workers, by name", openapi::list("workers", worker()));
    api.get("/v1/workers", list, list_workers);
}

/// [`switchyard_api::WorkerView`].
fn worker() -> Value {
    let texts = |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
    json!({
        "type": "object",
        "required": ["name", "kind", "alive", "functions", "types", "slots", "busy", "version", "since", "last_seen"],
        "properties": {
            "name": { "type": "string" },
            "kind": { "enum": ["process", "http", "plain"], "description": "How it reaches its tasks" },
            "alive": { "type": "boolean", "description": "Whether it has been heard of within its lease" },
            "functions": texts("Functions that it serves; with a `*` at the end, all that begin so"),
            "types": texts("Types of task that it takes; `function` is every function without a `queue`"),
            "slots": { "type": "integer", "description": "Tasks that it executes at once, as far as it says so" },
            "busy": { "type": "integer", "description": "Tasks that it holds, as far as it says so" },
            "version": { "type": "string", "description": "Of its program; empty if it does not say so" },
            "since": openapi::moment(),
            "last_seen": openapi::moment(),
        },
    })
}

async fn list_workers(State(state): State<ServerState>) -> Result<Json<WorkersView>, Problem> {
    Ok(Json(state.engine.workers().await?))
}
