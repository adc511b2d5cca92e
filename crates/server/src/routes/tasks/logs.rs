//! `POST /v1/tasks/logs`: a worker sends log lines of a task that it holds.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::in_flight::ClaimStatus;
use switchyard_runtime::SentLine;

use super::ClaimBody;
use super::settle::{held, standing_schema, why_not};
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Moment};
use crate::problem::Problem;

/// The most lines in one request. A request becomes one event.
const LINES_MAX: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
struct LogsBody {
    #[serde(flatten)]
    claim: ClaimBody,
    /// 1 to 1,000 lines, in order. What a line has beyond 4,096 bytes is cut off.
    #[schemars(with = "Vec<Line>")]
    lines: Vec<SentLine>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema of `SentLine`, which is read where plain workers are as well")]
enum Line {
    Text(String),
    Fields {
        message: String,
        level: Option<Level>,
        /// When it was logged; when it is received, if not given.
        at: Option<Moment>,
    },
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the schema of `LogLevel`")]
enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

pub(super) fn register(api: &mut Api) {
    let body = api.schema::<LogsBody>();
    let operation = api
        .operation("workers", "logTask", "Keep lines that the work logs")
        .description(
            "One `node_logged` event in the run's history: `GET /v1/runs/{run}/logs` shows the lines. An attempt keeps 2,000 \
             lines and 256 KiB; what is beyond that is dropped, which is marked.",
        )
        .keyless()
        .body(body, true)
        .problems([404, 409])
        .answer(200, "They are kept or dropped, and the task is still this worker's", standing_schema());
    api.post("/v1/tasks/logs", operation, logs);
}

async fn logs(State(state): State<ServerState>, Body(body): Body<LogsBody>) -> Result<Json<Value>, Problem> {
    let claim = body.claim.read()?;
    if !(1..=LINES_MAX).contains(&body.lines.len()) {
        let detail = format!("`lines` has {} entries; it may have 1 to {LINES_MAX}", body.lines.len());
        return Err(Problem::unprocessable("invalid_body", detail));
    }
    held(&state, &claim).await?;
    match state.engine.log(&claim, body.lines).await? {
        ClaimStatus::Lost => Err(why_not(&state, &claim).await?),
        standing => Ok(Json(json!({ "standing": standing }))),
    }
}
