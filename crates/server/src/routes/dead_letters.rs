//! `/v1/dead-letters`: tasks and signals that Switchyard gave up on.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_api::DeadLetterView;
use switchyard_runtime::{Principal, PurgeRequest};
use switchyard_store::StoreError;

use super::control::author;
use super::runs::run_now;
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Lasting, Operation, OptionalBody, Params, Segments};
use crate::openapi;
use crate::problem::Problem;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// At most this many, 1 to 1,000; 100 if not given.
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RedriveBody {
    /// Who sends it once more, for the run's history.
    by: Option<String>,
}

/// Which ones to remove: one of both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PurgeBody {
    /// Those that have lain there for longer.
    older_than: Option<Lasting>,
    /// Every one.
    #[serde(default)]
    all: bool,
}

pub(super) fn register(api: &mut Api) {
    let list = api
        .operation("dead letters", "listDeadLetters", "Dead letters, newest first")
        .description("Tasks that were given up after too many deliveries, signals of plain workers that make no sense, and entries of the outbox that could not be archived.")
        .query::<ListQuery>()
        .answer(200, "The dead letters", openapi::list("dead_letters", openapi::listed(letter(), "signal")))
        .problems([400]);
    api.get("/v1/dead-letters", list, list_letters);
    let groups = api
        .operation(
            "dead letters",
            "groupDeadLetters",
            "Dead letters by kind, node and reason, the largest groups first",
        )
        .query::<ListQuery>()
        .answer(200, "The groups", openapi::list("groups", group()))
        .problems([400]);
    api.get("/v1/dead-letters/groups", groups, list_groups);
    let body = api.schema::<PurgeBody>();
    let purged = json!({ "type": "object", "required": ["purged"], "properties": { "purged": { "type": "integer" } } });
    let purge = api
        .operation("dead letters", "purgeDeadLetters", "Remove dead letters by age, or all of them")
        .body(body, true)
        .answer(200, "How many are gone", purged);
    api.post("/v1/dead-letters/purge", purge, purge_letters);
    let show = api
        .operation("dead letters", "showDeadLetter", "A dead letter with every delivery that led to it")
        .answer(200, "The dead letter", letter())
        .problems([400, 404]);
    api.get("/v1/dead-letters/{letter}", show, show_letter);
    let remove = api
        .operation("dead letters", "removeDeadLetter", "Remove a dead letter")
        .empty_answer(204, "It is gone")
        .problems([400, 404]);
    api.delete("/v1/dead-letters/{letter}", remove, remove_letter);
    let body = api.schema::<RedriveBody>();
    let redriven = json!({
        "type": "object",
        "required": ["id"],
        "properties": { "id": { "type": "string" }, "run": openapi::maybe(openapi::run_at()) },
    });
    let redrive = api
        .operation("dead letters", "redriveDeadLetter", "Send a dead letter once more")
        .description("The run of a task starts over from what failed; a signal is looked at again.")
        .body(body, false)
        .answer(200, "It is no dead letter any more", redriven)
        .problems([404, 409]);
    api.post("/v1/dead-letters/{letter}/redrive", redrive, redrive_letter);
}

fn group() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "node", "reason", "letters", "first_at", "last_at", "example"],
        "properties": {
            "kind": { "enum": ["task", "signal", "outbox_entry"] },
            "node": openapi::maybe(json!({ "type": "string" })),
            "reason": { "type": "string" },
            "letters": { "type": "integer", "description": "How many there are" },
            "first_at": openapi::moment(),
            "last_at": openapi::moment(),
            "example": { "type": "string", "description": "The id of one of them" },
        },
    })
}

async fn list_groups(
    State(state): State<ServerState>,
    Params(query): Params<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = super::runs::page_size(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    Ok(Json(json!({ "groups": state.engine.history().dead_letter_groups(limit).await? })))
}

fn letter() -> Value {
    let text = || openapi::maybe(json!({ "type": "string" }));
    let delivery = json!({
        "type": "object",
        "required": ["worker", "attempt", "at"],
        "properties": {
            "worker": { "type": "string" },
            "attempt": { "type": "integer" },
            "at": openapi::moment(),
            "ended": text(),
            "ended_at": openapi::maybe(openapi::moment()),
        },
    });
    json!({
        "type": "object",
        "required": ["id", "kind", "reason", "at"],
        "properties": {
            "id": { "type": "string" },
            "kind": { "enum": ["task", "signal", "outbox_entry"] },
            "run_id": openapi::maybe(openapi::run_id()),
            "node": text(),
            "seq": openapi::maybe(json!({ "type": "integer", "description": "Of the event that buried it" })),
            "queue": text(),
            "priority": text(),
            "reason": { "type": "string" },
            "signal": openapi::maybe(json!({ "type": "string", "description": "As it came; of one that was too large, its beginning" })),
            "excerpt": openapi::maybe(json!({ "type": "string", "description": "How an entry of the outbox begins" })),
            "at": openapi::moment(),
            "deliveries": { "type": "array", "items": delivery },
        },
    })
}

async fn list_letters(
    State(state): State<ServerState>,
    Params(query): Params<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::bad_request("invalid_query", format!("`limit` may be 1 to {LIMIT_MAX}")));
    }
    Ok(Json(json!({ "dead_letters": state.engine.history().dead_letters(limit).await? })))
}

async fn show_letter(
    State(state): State<ServerState>,
    Segments(id): Segments<String>,
) -> Result<Json<DeadLetterView>, Problem> {
    Ok(Json(state.engine.history().dead_letter(&id).await?))
}

async fn remove_letter(
    State(state): State<ServerState>,
    Segments(id): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
) -> Result<StatusCode, Problem> {
    match state.engine.purge(&caller, &operation, &PurgeRequest::One(id.clone())).await? {
        0 => Err(StoreError::unknown("dead letter", id).into()),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

async fn purge_letters(
    State(state): State<ServerState>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    Body(body): Body<PurgeBody>,
) -> Result<Json<Value>, Problem> {
    let which = match (body.older_than, body.all) {
        (Some(age), false) => PurgeRequest::OlderThan(age.0),
        (None, true) => PurgeRequest::All,
        _ => return Err(Problem::unprocessable("invalid_body", "say either `older_than` or `all`")),
    };
    Ok(Json(json!({ "purged": state.engine.purge(&caller, &operation, &which).await? })))
}

async fn redrive_letter(
    State(state): State<ServerState>,
    Segments(id): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<RedriveBody>,
) -> Result<Json<Value>, Problem> {
    let by = author(body.by.as_ref(), &caller)?;
    let run = match state.engine.redrive(&by, &id, &operation).await? {
        Some(run) => run_now(&state, run).await?.0,
        None => Value::Null,
    };
    Ok(Json(json!({ "id": id, "run": run })))
}
