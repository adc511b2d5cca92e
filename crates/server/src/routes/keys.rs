//! `/v1/keys`: who may use the API.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::control::NAME_BYTES_MAX;
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Segments, short};
use crate::openapi;
use crate::problem::Problem;

/// A key that somebody wants.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    /// Whose it is or what for. Histories show it as the author of what is done with the key.
    #[schemars(length(min = 1, max = 256))]
    name: String,
}

pub(super) fn register(api: &mut Api) {
    let list = api.operation("keys", "listKeys", "Every API key that was ever made, oldest first").answer(
        200,
        "The keys, without their secrets",
        openapi::list("keys", openapi::api_key()),
    );
    api.get("/v1/keys", list, list_keys);
    let body = api.schema::<CreateBody>();
    let mut made = openapi::api_key();
    made["properties"]["key"] =
        json!({ "type": "string", "description": "The key. It is shown once, and kept nowhere" });
    let create = api
        .operation("keys", "createKey", "Make an API key")
        .description(
            "As long as there is no key, anybody on the server's machine can make the first one; from then on every \
             request needs a key.",
        )
        .body(body, true)
        .answer(201, "The key", made);
    api.post("/v1/keys", create, create_key);
    let revoke = api
        .operation("keys", "revokeKey", "Revoke an API key: it lets nobody in any more")
        .answer(200, "The key; it stays in the list", openapi::api_key())
        .problems([400, 404]);
    api.post("/v1/keys/{key}/revoke", revoke, revoke_key);
}

async fn list_keys(State(state): State<ServerState>) -> Result<Json<Value>, Problem> {
    Ok(Json(json!({ "keys": state.engine.keys().all().await? })))
}

async fn create_key(
    State(state): State<ServerState>,
    Body(body): Body<CreateBody>,
) -> Result<Response, Problem> {
    let name = short("name", &body.name, NAME_BYTES_MAX)?;
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::unprocessable("invalid_body", "`name` is empty or not printable"));
    }
    let made = state.engine.keys().create(name).await?;
    tracing::info!(key = made.record.id, name, "an API key was made");
    let mut document = serde_json::to_value(&made.record)?;
    document["key"] = made.text.into();
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(document)).into_response())
}

async fn revoke_key(
    State(state): State<ServerState>,
    Segments(id): Segments<String>,
) -> Result<Json<Value>, Problem> {
    if state.engine.keys().revoke(&id).await? {
        tracing::info!(key = id, "an API key was revoked");
    }
    Ok(Json(json!(state.engine.archive().api_key(&id).await?)))
}
