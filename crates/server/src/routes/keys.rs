//! `/v1/keys`: API keys.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_api::{ApiKeyView, DrawnKey};
use switchyard_core::Hash;
use switchyard_runtime::Principal;

use super::control::NAME_BYTES_MAX;
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Operation, Segments, short};
use crate::openapi;
use crate::problem::Problem;

/// A key to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    /// Whose it is or what for. Histories show it as the author of what is done with the key.
    #[schemars(length(min = 1, max = 256))]
    name: String,
    /// A key that its holder has drawn, so that its secret goes nowhere: `swk_<id>_<secret>`. Without it the server draws one.
    drawn: Option<DrawnKeyBody>,
}

/// What a server keeps of a key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DrawnKeyBody {
    /// Sixteen hexadecimal digits, of 64 random bits.
    #[schemars(extend("pattern" = "^[0-9a-f]{16}$"))]
    id: String,
    /// The SHA-256 of the secret, which has 256 random bits: `sha256:` and 64 hexadecimal digits.
    #[schemars(extend("pattern" = "^sha256:[0-9a-f]{64}$"))]
    digest: String,
}

impl DrawnKeyBody {
    fn read(self) -> Result<DrawnKey, Problem> {
        let invalid = |what: &str| Problem::unprocessable("invalid_body", format!("`drawn`: {what}"));
        let digest = self.digest.parse::<Hash>().map_err(|error| invalid(&error.to_string()))?;
        let drawn = DrawnKey { id: self.id, digest };
        match drawn.has_valid_id() {
            true => Ok(drawn),
            false => Err(invalid("its `id` has sixteen hexadecimal digits")),
        }
    }
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
    made["properties"]["key"] = json!({ "type": "string", "description": "The key, if the server drew it just now. It is shown once, and kept nowhere" });
    let create = api
        .operation("keys", "createKey", "Make an API key")
        .description(
            "As long as there is no key, every program on the server's machine can make the first one; from then on every \
             request needs a key. A repetition with the same `Idempotency-Key` answers the same key, without its text.",
        )
        .body(body, true)
        .answer(201, "The key", made);
    api.post("/v1/keys", create, create_key);
    let revoke = api
        .operation("keys", "revokeKey", "Revoke an API key: requests with it are refused")
        .answer(200, "The key; it stays in the list", openapi::api_key())
        .problems([400, 404]);
    api.post("/v1/keys/{key}/revoke", revoke, revoke_key);
}

async fn list_keys(State(state): State<ServerState>) -> Result<Json<Value>, Problem> {
    let keys: Vec<ApiKeyView> = state.engine.keys().all().await?.into_iter().map(Into::into).collect();
    Ok(Json(json!({ "keys": keys })))
}

async fn create_key(
    State(state): State<ServerState>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    Body(body): Body<CreateBody>,
) -> Result<Response, Problem> {
    let name = short("name", &body.name, NAME_BYTES_MAX)?;
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::unprocessable("invalid_body", "`name` is empty or not printable"));
    }
    let drawn = body.drawn.map(DrawnKeyBody::read).transpose()?;
    let made = state.engine.keys().create(&caller, &operation, name, drawn).await?;
    tracing::info!(key = made.record.id, name, by = %caller, "an API key was made");
    let mut document = serde_json::to_value(ApiKeyView::from(made.record))?;
    if let Some(text) = made.text {
        document["key"] = text.to_string().into();
    }
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(document)).into_response())
}

async fn revoke_key(
    State(state): State<ServerState>,
    Segments(id): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
) -> Result<Json<ApiKeyView>, Problem> {
    if state.engine.keys().revoke(&caller, &operation, &id).await? {
        tracing::info!(key = id, by = %caller, "an API key was revoked");
    }
    let read = state.engine.keys().get(&id).await;
    Ok(Json(read.map_err(|error| Problem::from(error).after_the_change())?.into()))
}
