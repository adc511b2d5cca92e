//! `/v1/runs/{run}/events`: a run's history, live as server-sent events or as pages of JSON.

use axum::Json;
use axum::body::{Body as ResponseBody, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind};
use switchyard_runtime::Follow;
use switchyard_store::RunRecord;

use super::runs::{page_size, run_id};
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Params, Segments};
use crate::openapi;
use crate::problem::Problem;
use crate::wire;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Only events after this one. `Last-Event-ID` comes first.
    after: Option<u64>,
    /// For JSON: at most 1,000 events; 100 if not given.
    limit: Option<usize>,
}

pub(super) fn register(api: &mut Api) {
    let page = json!({
        "type": "object",
        "required": ["events", "next", "ended"],
        "properties": {
            "events": { "type": "array", "items": openapi::event() },
            "next": { "type": ["integer", "null"], "description": "`after` of the next page, if there are more events now" },
            "ended": { "type": "boolean", "description": "Whether the run has ended and this is its last page" },
        },
    });
    let content = json!({
        "text/event-stream": { "schema": { "type": "string" } },
        "application/json": { "schema": page },
    });
    let events = api
        .operation("runs", "followRun", "The events of a run: what was, then what happens, none missing, none twice")
        .description(
            "With `Accept: application/json` a page; otherwise server-sent events: `id` is the event's number, \
             `event` its type, `data` the event as JSON. A stream ends after `run_ended`, or when the server stops: \
             reconnect with `Last-Event-ID`. 204 means that the run has ended and there is nothing after that \
             event: do not reconnect. Comments every 15 s keep the connection.",
        )
        .query::<EventsQuery>()
        .header("Last-Event-ID", "The number of the last event that was seen", json!({ "type": "integer", "minimum": 0 }))
        .answer_as(200, "The events", content)
        .empty_answer(204, "The run has ended, and there is no event after that one")
        .problems([400, 404]);
    api.get("/v1/runs/{run}/events", events, events_of);
}

async fn events_of(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = run_id(&run)?;
    let limit = page_size(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    let after = last_seen(&headers)?.or(query.after).unwrap_or(0);
    // Subscribed before the first read, so that no event is missed.
    let follow = state.engine.follow(run, after);
    let record = state.engine.history().run(run).await?;
    if after > record.last_seq {
        let detail = format!("{run} has {} events; there is no event {after}", record.last_seq);
        return Err(Problem::bad_request("invalid_query", detail));
    }
    if wants_json(&headers) {
        return Ok(page(&state, run, after, limit).await?.into_response());
    }
    if has_ended(&record) && after == record.last_seq {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(stream_of(Stream { state, run, follow }))
}

pub(super) fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let seen = value.to_str().ok().and_then(|text| text.parse().ok());
    seen.map(Some)
        .ok_or_else(|| Problem::bad_request("invalid_query", "`Last-Event-ID` is not a number of an event"))
}

pub(super) fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.contains("application/json") && !accepted.contains("text/event-stream")
}

pub(super) fn has_ended(record: &RunRecord) -> bool {
    record.status.is_terminal()
}

async fn page(state: &ServerState, run: RunId, after: u64, limit: usize) -> Result<Json<Value>, Problem> {
    let history = state.engine.history();
    let events = history.events_page(run, after, limit).await?;
    let last = events.last().map_or(after, |event| event.seq);
    let record = history.run(run).await?;
    let events: Vec<Value> = events.iter().map(wire::event).collect::<Result<_, _>>()?;
    Ok(Json(json!({
        "events": events,
        "next": (last < record.last_seq).then_some(last),
        "ended": has_ended(&record) && last == record.last_seq,
    })))
}

/// A stream of events that the connection pulls: a slow client makes the server hold one page, not the whole history.
struct Stream {
    state: ServerState,
    run: RunId,
    follow: Follow,
}

fn stream_of(stream: Stream) -> Response {
    sse(stream::unfold(Some(stream), |stream| async move { Some(next_chunk(stream?).await) }))
}

/// A response that streams these chunks as server-sent events.
pub(super) fn sse(chunks: impl futures::Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // nginx would hold events back until its buffer is full.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let chunks = chunks.map(Ok::<_, std::convert::Infallible>);
    (headers, ResponseBody::from_stream(chunks)).into_response()
}

/// The next chunk to send, and the stream unless it has ended.
async fn next_chunk(mut stream: Stream) -> (Bytes, Option<Stream>) {
    let next = tokio::select! {
        next = tokio::time::timeout(stream.state.limits.heartbeat_every, stream.follow.next()) => next,
        // The client reconnects to the next server, with the id of the last event it saw.
        () = stream.state.stop.cancelled() => return (Bytes::from_static(b": the server stops\n\n"), None),
    };
    match next {
        Err(_) => (Bytes::from_static(b": nothing new\n\n"), Some(stream)),
        Ok(Ok(events)) => match encode(&events) {
            Ok(chunk) if is_over(&stream.state, stream.run, &events).await => (chunk, None),
            Ok(chunk) => (chunk, Some(stream)),
            Err(_) => (Bytes::new(), None),
        },
        Ok(Err(error)) => {
            tracing::warn!(run = %stream.run, %error, "a stream was broken off");
            (Bytes::new(), None)
        }
    }
}

/// Whether these are the last events of the run. A run that was retried after it ended has more.
pub(super) async fn is_over(state: &ServerState, run: RunId, events: &[Event]) -> bool {
    let Some(last) = events.last() else { return true };
    if !matches!(last.kind, EventKind::RunEnded { .. }) {
        return false;
    }
    let record = state.engine.history().run(run).await;
    record.map_or(true, |record| record.last_seq == last.seq)
}

fn encode(events: &[Event]) -> Result<Bytes, Problem> {
    let mut text = String::new();
    for event in events {
        let data = serde_json::to_string(&wire::event(event)?)?;
        text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", event.seq, event.kind.name()));
    }
    Ok(text.into())
}
