//! `POST /v1/tasks/checkpoint`, `chunks`: a worker reports progress on a task that it holds.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::Payload;
use switchyard_core::in_flight::ClaimStatus;
use switchyard_core::run::{ClaimRef, Progress};
use switchyard_runtime::handlers::CHUNK_BYTES_MAX;

use super::ClaimBody;
use super::settle::{held, standing_schema, why_not};
use crate::ServerState;
use crate::api::{Api, Operation};
use crate::extract::Body;
use crate::problem::Problem;

/// The most chunks in one request. A request becomes one event.
const CHUNKS_MAX: usize = 256;

#[derive(Debug, Deserialize, JsonSchema)]
struct CheckpointBody {
    #[serde(flatten)]
    claim: ClaimBody,
    /// Any JSON: how far the work is, in the worker's own words.
    value: Value,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ChunksBody {
    #[serde(flatten)]
    claim: ClaimBody,
    /// 1 to 256 pieces of output, in order; any JSON of at most 4,096 bytes each.
    chunks: Vec<Value>,
}

pub(super) fn register(api: &mut Api) {
    let saying = |operation: Operation, body: Value| {
        let operation = operation.keyless().body(body, true).problems([404, 409]);
        operation.answer(200, "It is kept, and the task is still this worker's", standing_schema())
    };
    let body = api.schema::<CheckpointBody>();
    let operation = api.operation("workers", "checkpointTask", "Keep how far the work is").description(
        "The next worker that gets the node, after a failed attempt or a lost worker, finds it in the task.",
    );
    api.post("/v1/tasks/checkpoint", saying(operation, body), checkpoint);
    let body = api.schema::<ChunksBody>();
    let operation = api
        .operation("workers", "streamChunks", "Show output as it comes")
        .description("One `node_chunks` event in the run's history, for those who follow it.");
    api.post("/v1/tasks/chunks", saying(operation, body), chunks);
}

async fn checkpoint(
    State(state): State<ServerState>,
    Body(body): Body<CheckpointBody>,
) -> Result<Json<Value>, Problem> {
    let claim = body.claim.read()?;
    held(&state, &claim).await?;
    let value = state.engine.payloads().keep(&body.value).await?;
    say(&state, &claim, Progress::Checkpoint(value)).await
}

async fn chunks(
    State(state): State<ServerState>,
    Body(body): Body<ChunksBody>,
) -> Result<Json<Value>, Problem> {
    let claim = body.claim.read()?;
    let chunks = readable(&body.chunks)?;
    held(&state, &claim).await?;
    say(&state, &claim, Progress::Chunks(chunks)).await
}

fn readable(chunks: &[Value]) -> Result<Vec<Payload>, Problem> {
    if !(1..=CHUNKS_MAX).contains(&chunks.len()) {
        let detail = format!("`chunks` has {} entries; it may have 1 to {CHUNKS_MAX}", chunks.len());
        return Err(Problem::unprocessable("invalid_body", detail));
    }
    if let Some(large) = chunks.iter().map(|chunk| chunk.to_string().len()).find(|&n| n > CHUNK_BYTES_MAX) {
        let detail = format!("a chunk has {large} bytes, more than the {CHUNK_BYTES_MAX} it may have");
        return Err(Problem::unprocessable("chunk_too_large", detail));
    }
    Ok(chunks.iter().map(Payload::from_value).collect())
}

async fn say(state: &ServerState, claim: &ClaimRef, progress: Progress) -> Result<Json<Value>, Problem> {
    match state.engine.progress(claim, progress).await? {
        ClaimStatus::Lost => Err(why_not(state, claim).await?),
        standing => Ok(Json(json!({ "standing": standing }))),
    }
}
