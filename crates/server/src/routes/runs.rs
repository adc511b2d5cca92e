//! `/v1/runs`: submits, lists and shows runs.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_api::RunPage;
use switchyard_core::in_flight::Acceptance;
use switchyard_core::labels::check_labels;
use switchyard_core::run::{Concurrency, RunStatus};
use switchyard_core::{Labels, OperationId, RunId, Timestamp, TraceLink};
use switchyard_lang::{Definition, Program};
use switchyard_observe::trace::incoming;
use switchyard_runtime::{EngineError, Principal, Start, Submission, ids};
use switchyard_store::{BadFilter, RunFilter, StoreError};

use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, ChangeId, IdempotencyKey, Lasting, Moment, Params, Segments, short};
use crate::openapi;
use crate::problem::Problem;
use crate::wire;

/// The longest idempotency or concurrency key; the run stores it.
const KEY_BYTES_MAX: usize = 512;

const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 200;

/// A run to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubmitBody {
    /// The name of a registered workflow, or a definition.
    #[schemars(with = "WorkflowOrName")]
    workflow: Value,
    /// Of a registered workflow; the newest, if not given.
    version: Option<u32>,
    /// Any JSON.
    #[serde(default)]
    input: Value,
    /// The same key with the same workflow and input answers the same run. The header `Idempotency-Key` says the same.
    idempotency_key: Option<String>,
    /// Instead of the workflow's own.
    concurrency: Option<ConcurrencyBody>,
    /// No node starts before this moment. One that has passed starts the run at once; at most ten years ahead.
    start_at: Option<Moment>,
    /// Instead: how long to wait before the first node starts.
    delay: Option<Lasting>,
    /// Of the nodes that have none of their own and of the runs that they start, 1 (last) to 10 (first).
    #[schemars(range(min = 1, max = 10))]
    priority: Option<u8>,
    /// The run fails if it has not ended so long after its start.
    deadline: Option<Lasting>,
    /// How many nodes of the run may be active at once.
    parallelism: Option<NonZeroU32>,
    /// Words to find the run by, at most 16. They win over those of the workflow.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema of a field that is looked into later, for better messages")]
enum WorkflowOrName {
    Name(String),
    Definition(Box<Definition>),
}

/// At most `limit` runs with this key are under way; the others wait in line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConcurrencyBody {
    key: String,
    limit: NonZeroU32,
}

/// Which runs to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Any number of conditions: `status=failed,cancelled label=team=search created_after=24h`. A value with blanks is
    /// quoted.
    filter: Option<String>,
    /// Only runs with this status, or one of these, parted by commas.
    status: Option<String>,
    /// Only runs of this workflow.
    workflow: Option<String>,
    /// Only runs with this label: `team=search`. More of them go into `filter`.
    label: Option<String>,
    /// Created at this time or later: RFC 3339, or a duration such as `24h` that is counted back from now.
    created_after: Option<String>,
    /// Created before this time.
    created_before: Option<String>,
    /// Ended at this time or later.
    ended_after: Option<String>,
    /// Ended before this time.
    ended_before: Option<String>,
    /// Only runs that this run started.
    parent: Option<String>,
    /// Only runs that this schedule started.
    schedule: Option<String>,
    /// Only runs that failed at this node.
    node: Option<String>,
    /// Only runs whose error has this code.
    code: Option<String>,
    /// Only runs with this text in their error. Needs a time range.
    error: Option<String>,
    /// `newest` first, which is the default, or `oldest` first.
    order: Option<String>,
    /// Also runs that other runs started.
    #[serde(default)]
    include_children: bool,
    /// `true`: how many runs there are, up to 1,000; `exact`: how many, however long that takes.
    #[schemars(with = "Option<String>")]
    count: Option<CountWanted>,
    /// At most 200; 50 if not given.
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CountWanted {
    True,
    Exact,
}

impl ListQuery {
    fn filter(&self, now: Timestamp) -> Result<RunFilter, BadFilter> {
        let mut filter = RunFilter::parse(self.filter.as_deref().unwrap_or_default(), now)?;
        let conditions = [
            ("status", &self.status),
            ("workflow", &self.workflow),
            ("label", &self.label),
            ("created_after", &self.created_after),
            ("created_before", &self.created_before),
            ("ended_after", &self.ended_after),
            ("ended_before", &self.ended_before),
            ("parent", &self.parent),
            ("schedule", &self.schedule),
            ("node", &self.node),
            ("code", &self.code),
            ("error", &self.error),
            ("order", &self.order),
        ];
        for (field, value) in conditions {
            if let Some(value) = value {
                filter.set(field, value, now)?;
            }
        }
        filter.include_children |= self.include_children;
        filter.check()?;
        Ok(filter)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShowQuery {
    /// As it was right after this event.
    at: Option<u64>,
}

pub(super) fn register(api: &mut Api) {
    let body = api.schema::<SubmitBody>();
    let submit = api
        .operation("runs", "submitRun", "Accept a run")
        .description(
            "When this answers 202, the run is durable and will end, also if processes are killed on the way. Without an \
             `Idempotency-Key`, a 503 with the code `outcome_unknown` names one under which this very submission can be \
             repeated.",
        )
        .header(
            "traceparent",
            "The trace that the run is to belong to (W3C trace context)",
            json!({ "type": "string" }),
        )
        .header("tracestate", "Passed on with the calls of the run", json!({ "type": "string" }))
        .body(body, true)
        .answer(202, "Accepted", openapi::run_at())
        .answer(
            200,
            "The idempotency key was used before, for this run, with the same workflow and input",
            openapi::run_at(),
        )
        .problems([404, 409]);
    api.post("/v1/runs", submit, submit_run);
    let list = api
        .operation("runs", "listRuns", "List runs that every condition holds for, newest first")
        .query::<ListQuery>()
        .answer(200, "A page of runs", openapi::run_page())
        .problems([400]);
    api.get("/v1/runs", list, list_runs);
    let show = api
        .operation("runs", "showRun", "A run with its nodes and their outputs")
        .query::<ShowQuery>()
        .answer(200, "The run, now or at an event", openapi::run_view())
        .problems([400, 404]);
    api.get("/v1/runs/{run}", show, show_run);
}

/// Parses a run id from a path.
pub(super) fn run_id(text: &str) -> Result<RunId, Problem> {
    Ok(text.parse::<RunId>()?)
}

/// The caller's trace context. Invalid headers are ignored.
fn trace(headers: &HeaderMap) -> Option<TraceLink> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    incoming(text("traceparent")?, text("tracestate"))
}

async fn submit_run(
    State(state): State<ServerState>,
    headers: HeaderMap,
    IdempotencyKey(header): IdempotencyKey,
    Extension(caller): Extension<Principal>,
    Extension(change): Extension<ChangeId>,
    Body(body): Body<SubmitBody>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let key = one_key(header, body.idempotency_key.clone())?;
    let (program, workflow_version) = find_program(&state, &body).await?;
    let run = state.engine.new_run_id();
    if let Some(id) = key.as_deref().map_or_else(|| ids::submission_id(run), |key| OperationId::new(key).ok())
    {
        change.is(id);
    }
    let submission = Submission {
        run: Some(run),
        workflow_version,
        idempotency_key: key,
        concurrency: body.concurrency.map(concurrency).transpose()?,
        start: start(body.start_at, body.delay)?,
        priority: body.priority,
        deadline: body.deadline.map(|deadline| deadline.0),
        parallelism: body.parallelism.map(NonZeroU32::get),
        labels: labels(body.labels)?,
        trace: trace(&headers),
        ..Submission::new(program, body.input)
    };
    // A run without a delayed start or a concurrency key starts at once, so its status need not be read.
    let has_key = submission.concurrency.is_some() || submission.program.definition.concurrency.is_some();
    let may_queue = has_key || submission.start.is_some();
    Ok(match state.engine.submit(&caller, submission).await.map_err(not_submitted)? {
        Acceptance::New(run) if !may_queue => {
            (StatusCode::ACCEPTED, Json(json!({ "run_id": run, "status": RunStatus::Running })))
        }
        // The run is accepted even if its status cannot be read.
        Acceptance::New(run) => match run_at(&state, run).await {
            Ok(standing) => (StatusCode::ACCEPTED, standing),
            Err(_) => (StatusCode::ACCEPTED, Json(json!({ "run_id": run, "status": RunStatus::Queued }))),
        },
        Acceptance::Existing(run) => (StatusCode::OK, run_at(&state, run).await?),
    })
}

async fn find_program(
    state: &ServerState,
    body: &SubmitBody,
) -> Result<(Arc<Program>, Option<u32>), Problem> {
    match &body.workflow {
        Value::String(name) => {
            let (program, version) = state.engine.registered_program(name, body.version).await?;
            Ok((program, Some(version)))
        }
        Value::Object(_) if body.version.is_some() => Err(Problem::unprocessable(
            "invalid_body",
            "`version` chooses among registered versions; a definition has none",
        )),
        definition @ Value::Object(_) => Ok((Arc::new(Program::compile_value(definition)?), None)),
        _ => Err(Problem::unprocessable("invalid_body", "`workflow` must be a name or a definition")),
    }
}

/// The problem for a failed submission. If the outcome is unknown and the error names no operation id, the caller has
/// sent its key in the body and repeats the request with it.
fn not_submitted(error: EngineError) -> Problem {
    let has_its_key = matches!(error, EngineError::Store(StoreError::OutcomeUnknown(_)));
    let problem = Problem::from(error);
    match has_its_key {
        true => problem.hint("repeat the same request with the same `idempotency_key`: it takes effect once"),
        false => problem,
    }
}

/// The idempotency key from the header or the body; an error if they differ.
fn one_key(header: Option<OperationId>, body: Option<String>) -> Result<Option<String>, Problem> {
    let body = body.map(idempotency_key).transpose()?;
    match (header, body) {
        (Some(header), Some(body)) if header.as_str() != body => Err(Problem::bad_request(
            "two_idempotency_keys",
            format!(
                "the header Idempotency-Key says `{header}`, and `idempotency_key` in the body says `{body}`"
            ),
        )
        .hint("send one of them, or the same in both")),
        (Some(header), _) => Ok(Some(header.as_str().to_owned())),
        (None, body) => Ok(body),
    }
}

fn idempotency_key(key: String) -> Result<String, Problem> {
    if key.is_empty() {
        return Err(Problem::unprocessable("invalid_body", "`idempotency_key` is empty"));
    }
    short("idempotency_key", &key, KEY_BYTES_MAX)?;
    Ok(key)
}

/// Checks the labels of a body; the error names the invalid one.
pub(super) fn labels(given: BTreeMap<String, String>) -> Result<Labels, Problem> {
    let labels: Labels = given.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
    check_labels(&labels).map_err(|bad| Problem::unprocessable("invalid_labels", bad))?;
    Ok(labels)
}

fn start(at: Option<Moment>, delay: Option<Lasting>) -> Result<Option<Start>, Problem> {
    match (at, delay) {
        (Some(_), Some(_)) => {
            Err(Problem::unprocessable("invalid_body", "`start_at` and `delay` exclude each other"))
        }
        (Some(at), None) => Ok(Some(Start::At(at.0))),
        (None, delay) => Ok(delay.map(|delay| Start::After(delay.0))),
    }
}

fn concurrency(body: ConcurrencyBody) -> Result<Concurrency, Problem> {
    short("concurrency.key", &body.key, KEY_BYTES_MAX)?;
    Ok(Concurrency { key: body.key.into(), limit: body.limit.get() })
}

/// The id and the status of a run.
pub(super) async fn run_at(state: &ServerState, run: RunId) -> Result<Json<Value>, Problem> {
    let record = state.engine.history().run(run).await?;
    Ok(Json(json!({ "run_id": run, "status": record.status })))
}

/// The id and the status of a run after a command. If the state cannot be read, the error says that the command was
/// carried out.
pub(super) async fn run_now(state: &ServerState, run: RunId) -> Result<Json<Value>, Problem> {
    match state.engine.state(run).await {
        Ok(found) => Ok(Json(json!({ "run_id": run, "status": found.status() }))),
        Err(EngineError::Store(error @ StoreError::Unavailable(_))) => Err(Problem::done_and_unread(&error)),
        Err(error) => Err(error.into()),
    }
}

async fn list_runs(
    State(state): State<ServerState>,
    Params(query): Params<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let now = state.engine.clock().now();
    let filter = query.filter(now).map_err(|bad| Problem::bad_request("invalid_query", bad))?;
    let cursor = query.cursor.as_deref().map(str::parse::<RunId>).transpose();
    let filter = RunFilter {
        cursor: cursor.map_err(|error| Problem::bad_request("invalid_query", error))?,
        limit: page_size(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?,
        ..filter
    };
    let history = state.engine.history();
    let page = history.runs(&filter).await?;
    let count = match query.count {
        None => None,
        Some(wanted) => {
            let all = RunFilter { cursor: None, ..filter };
            Some(history.count_runs(&all, wanted == CountWanted::Exact).await?.into())
        }
    };
    let page = RunPage { runs: page.items, next: page.next, count };
    Ok(Json(serde_json::to_value(page)?))
}

pub(super) fn page_size(asked: Option<usize>, default: usize, max: usize) -> Result<usize, Problem> {
    match asked.unwrap_or(default) {
        size if (1..=max).contains(&size) => Ok(size),
        size => {
            Err(Problem::bad_request("invalid_query", format!("`limit` is {size}; it may be 1 to {max}")))
        }
    }
}

async fn show_run(
    State(state): State<ServerState>,
    Segments(run): Segments<String>,
    Params(query): Params<ShowQuery>,
) -> Result<Json<Value>, Problem> {
    let run = run_id(&run)?;
    let view = match query.at {
        Some(at) => {
            let history = state.engine.history();
            history.view(&history.state(run, Some(at)).await?).await?
        }
        None => state.engine.view(&state.engine.state(run).await?).await?,
    };
    Ok(Json(wire::run(&view)?))
}
