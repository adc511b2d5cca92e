//! `GET /healthz`, `/readyz`: for load balancers and supervisors.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use switchyard_store::{StoreError, Unarchived};

use crate::ServerState;
use crate::api::Api;
use crate::problem::Problem;

/// How long a store may take to say that it is there.
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
    answers("hot_store_unavailable", "what is in flight", state.engine.hot().ready()).await?;
    // An empty append is acknowledged once everything before it is durable: it fails if the archive cannot write.
    answers("archive_unavailable", "history", state.engine.archive().append(Vec::new())).await?;
    moves(state.engine.hot().unarchived()).await?;
    Ok(Json(json!({ "status": "ready" })))
}

/// Asked by those who do not wait long, and who are not told where a store is: that is in the log.
async fn answers(
    code: &'static str,
    what: &str,
    answer: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), Problem> {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    let answer = answer.unwrap_or_else(|_| Err(StoreError::unavailable("no answer in time")));
    answer.map_err(|error| {
        if let StoreError::Mismatched(_) = error {
            return error.into();
        }
        tracing::warn!(code, %error, "not ready");
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            code,
            format!("the store of {what} does not take changes"),
        )
    })
}

/// What was answered reaches the archive. If it does not, decisions and submissions would wait in vain.
async fn moves(
    unarchived: impl Future<Output = Result<Option<Unarchived>, StoreError>>,
) -> Result<(), Problem> {
    let Ok(Ok(Some(Unarchived { changes, oldest, stuck: Some(why) }))) =
        tokio::time::timeout(PATIENCE, unarchived).await
    else {
        return Ok(());
    };
    tracing::warn!(changes, oldest_s = oldest.as_secs(), %why, "the outbox is stuck");
    let detail = format!("{changes} changes wait for the archive, the oldest for {} s", oldest.as_secs());
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "outbox_stuck", detail)
        .hint("the log and `switchyard doctor` say why"))
}
