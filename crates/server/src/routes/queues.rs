//! `/v1/queues`: how many tasks wait for workers.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use switchyard_api::QueuesView;

use crate::ServerState;
use crate::api::Api;
use crate::openapi;
use crate::problem::Problem;

pub(super) fn register(api: &mut Api) {
    let queue = json!({
        "type": "object",
        "required": ["queue", "priority", "waiting", "claimed", "dead_letters"],
        "properties": {
            "queue": { "type": "string", "description": "The type of task" },
            "priority": { "enum": ["high", "normal", "low"] },
            "waiting": { "type": "integer", "description": "For a worker" },
            "claimed": { "type": "integer", "description": "Held by one" },
            "oldest_at": openapi::maybe(openapi::moment()),
            "dead_letters": { "type": "integer", "description": "Given up" },
            "workers": { "type": "integer", "description": "Workers that are alive and take tasks of it" },
        },
    });
    let mut queues = openapi::list("queues", queue);
    queues["properties"]["dead_letters"] =
        json!({ "type": "integer", "description": "Of every type, those of signals included" });
    let list = api
        .operation("workers", "listQueues", "Tasks that wait for a worker, by type and priority")
        .answer(200, "The queues", queues);
    api.get("/v1/queues", list, list_queues);
}

async fn list_queues(State(state): State<ServerState>) -> Result<Json<QueuesView>, Problem> {
    Ok(Json(state.engine.queues().await?))
}
