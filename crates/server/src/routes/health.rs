//! `GET /healthz`, `/readyz`: for load balancers and supervisors.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::ServerState;
use crate::api::Api;
use crate::problem::Problem;

pub(super) fn register(api: &mut Api) {
    let status = json!({ "type": "object", "properties": { "status": { "type": "string" } } });
    let alive = api.operation("health", "healthz", "Whether the process answers");
    api.get("/healthz", alive.answer(200, "It does", status.clone()), healthz);
    let ready = api.operation("health", "readyz", "Whether the store takes writes");
    api.get("/readyz", ready.answer(200, "It does", status), readyz);
}

async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

async fn readyz(State(state): State<ServerState>) -> Result<Json<Value>, Problem> {
    if state.stop.is_cancelled() {
        let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
        return Err(Problem::new(status, "stopping", "the server is being stopped"));
    }
    // An empty append is acknowledged once everything before it is durable: it fails if the archive cannot write.
    state.engine.archive().append(Vec::new()).await?;
    Ok(Json(json!({ "status": "ready" })))
}
