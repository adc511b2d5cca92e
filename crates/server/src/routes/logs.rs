//! `/v1/runs/{run}/logs`: the log lines of a run's steps, live as server-sent events or as pages of JSON.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::RunId;
use switchyard_core::run::Event;
use switchyard_runtime::{EngineError, Follow, LogFilter};

use super::events::{has_ended, is_over, last_seen, sse, wants_json};
use super::runs::{page_size, run_id};
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Params, Segments};
use crate::openapi;
use crate::problem::Problem;

const LIMIT_DEFAULT: usize = 1_000;
const LIMIT_MAX: usize = 10_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogsQuery {
    /// Only lines of this node.
    node: Option<String>,
    /// Only lines of this attempt, from 1.
    attempt: Option<u32>,
    /// Only lines of events after this one. `Last-Event-ID` comes first.
    after: Option<u64>,
    /// For JSON: how many lines, about; at most 10,000, and 1,000 if not given.
    limit: Option<usize>,
}

/// [`switchyard_api::LoggedLines`].
fn logged_lines() -> Value {
    let line = json!({
        "type": "object",
        "required": ["at", "message"],
        "properties": {
            "at": openapi::moment(),
            "level": { "type": "string", "enum": ["debug", "info", "warn", "error"] },
            "message": { "type": "string" },
        },
    });
    json!({
        "type": "object",
        "required": ["seq", "run_id", "node", "attempt", "lines"],
        "properties": {
            "seq": { "type": "integer", "description": "The number of the event that keeps the lines" },
            "run_id": openapi::run_id(),
            "node": { "type": "string" },
            "attempt": { "type": "integer", "description": "From 1" },
            "lines": { "type": "array", "items": line },
            "truncated": { "type": "boolean", "description": "The attempt logged more than is kept: what follows was dropped" },
            "missing": { "type": "string", "description": "Why the lines cannot be brought back" },
        },
    })
}

pub(super) fn register(api: &mut Api) {
    let page = json!({
        "type": "object",
        "required": ["logs", "next", "last", "ended"],
        "properties": {
            "logs": { "type": "array", "items": logged_lines() },
            "next": { "type": ["integer", "null"], "description": "`after` of the next page, if there may be more now" },
            "last": { "type": "integer", "description": "The newest event that was looked at" },
            "ended": { "type": "boolean", "description": "Whether the run has ended and this is its last page" },
        },
    });
    let content = json!({
        "text/event-stream": { "schema": { "type": "string" } },
        "application/json": { "schema": page },
    });
    let logs = api
        .operation("runs", "runLogs", "What the steps of a run logged, then what they log")
        .description(
            "With `Accept: application/json` a page; otherwise server-sent events of the type `node_logged`: `id` is the \
             number of the event, `data` its lines as JSON. An attempt keeps 2,000 lines and 256 KiB. A stream ends with \
             the run, or when the server stops: reconnect with `Last-Event-ID`. 204 means that the run has ended and \
             there is nothing after that event.",
        )
        .query::<LogsQuery>()
        .header("Last-Event-ID", "The number of the last event that was seen", json!({ "type": "integer", "minimum": 0 }))
        .answer_as(200, "The lines", content)
        .empty_answer(204, "The run has ended, and there is no event after that one")
        .problems([400, 404]);
    api.get("/v1/runs/{run}/logs", logs, logs_of);
}

async fn logs_of(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    Params(query): Params<LogsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = run_id(&run)?;
    let limit = page_size(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    let after = last_seen(&headers)?.or(query.after).unwrap_or(0);
    let filter = LogFilter { node: query.node, attempt: query.attempt };
    // Subscribed before the first read, so that no event is missed.
    let follow = state.engine.follow(run, after);
    let record = state.engine.history().run(run).await?;
    if wants_json(&headers) {
        return Ok(Json(state.engine.history().logs(run, after, &filter, limit).await?).into_response());
    }
    if has_ended(&record) && after >= record.last_seq {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let stream = Some(Stream { state, run, filter, follow });
    Ok(sse(futures::stream::unfold(stream, |stream| async move { Some(next_chunk(stream?).await) })))
}

/// A stream of log lines that the connection pulls: a slow client makes the server hold one page, not the whole log.
struct Stream {
    state: ServerState,
    run: RunId,
    filter: LogFilter,
    follow: Follow,
}

/// The next chunk to send, and the stream unless it has ended.
async fn next_chunk(mut stream: Stream) -> (Bytes, Option<Stream>) {
    let next = tokio::select! {
        next = tokio::time::timeout(stream.state.limits.heartbeat_every, stream.follow.next()) => next,
        () = stream.state.stop.cancelled() => return (Bytes::from_static(b": the server stops\n\n"), None),
    };
    let Ok(next) = next else { return (Bytes::from_static(b": nothing new\n\n"), Some(stream)) };
    let sent = match next {
        Ok(events) => stream.encode(&events).await.map(|chunk| (chunk, events)),
        Err(error) => Err(error),
    };
    match sent {
        Ok((chunk, events)) if is_over(&stream.state, stream.run, &events).await => (chunk, None),
        Ok((chunk, _)) => (chunk, Some(stream)),
        Err(error) => {
            tracing::warn!(run = %stream.run, %error, "a stream of logs was broken off");
            (Bytes::from_static(b": broken off\n\n"), None)
        }
    }
}

impl Stream {
    /// Encodes the matching lines of these events; a comment if there are none.
    async fn encode(&self, events: &[Event]) -> Result<Bytes, EngineError> {
        let mut text = String::new();
        for event in events {
            if let Some(logged) = self.state.engine.history().logged(event, &self.filter).await? {
                let data = json!(logged);
                text.push_str(&format!("id: {}\nevent: node_logged\ndata: {data}\n\n", event.seq));
            }
        }
        Ok(if text.is_empty() { Bytes::from_static(b":\n\n") } else { text.into() })
    }
}
