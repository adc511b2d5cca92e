//! `GET /healthz`, `/readyz`: for load balancers and supervisors.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use switchyard_runtime::NotReady;
use switchyard_store::{StoreError, Unarchived};

use crate::ServerState;
use crate::api::Api;
use crate::problem::Problem;

/// How long a store may take to answer the health check.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn register(api: &mut Api) {
    let status = json!({ "type": "object", "properties": { "status": { "type": "string" } } });
    let alive = api.operation("health", "healthz", "Whether the process answers");
    api.get("/healthz", alive.answer(200, "It does", status.clone()), healthz);
    let ready = api.operation("health", "readyz", "Whether the stores take changes");
    api.get("/readyz", ready.answer(200, "It does", status), readyz);
}

async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

async fn readyz(State(state): State<ServerState>) -> Result<Json<Value>, Problem> {
    if state.stop.is_cancelled() {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Err(Problem::new(status, "stopping", "the server is being stopped"));
    }
    state.engine.ready(PATIENCE).await.map_err(|why| match why {
        NotReady::HotStore(error) => unavailable("hot_store_unavailable", "what is in flight", error),
        NotReady::Archive(error) => unavailable("archive_unavailable", "history", error),
        NotReady::OutboxStuck(unarchived) => stuck(&unarchived),
    })?;
    Ok(Json(json!({ "status": "ready" })))
}

/// The store's address goes to the log only, because these routes need no key.
fn unavailable(code: &'static str, what: &str, error: StoreError) -> Problem {
    if let StoreError::Mismatched(_) = error {
        return error.into();
    }
    tracing::warn!(code, %error, "not ready");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, format!("the store of {what} does not take changes"))
}

fn stuck(Unarchived { changes, oldest, stuck }: &Unarchived) -> Problem {
    let why = stuck.as_deref().unwrap_or_default();
    tracing::warn!(changes, oldest_s = oldest.as_secs(), %why, "the outbox is stuck");
    let detail = format!("{changes} changes wait for the archive, the oldest for {} s", oldest.as_secs());
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "outbox_stuck", detail)
        .hint("the log and `switchyard doctor` say why")
}
