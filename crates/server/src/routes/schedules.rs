//! `/v1/schedules`: times at which Switchyard starts workflows.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_api::{Backfilled, RunAt, ScheduleView};
use switchyard_core::Timestamp;
use switchyard_core::schedule::{CatchUp, Overlap, Schedule};
use switchyard_runtime::{EngineError, Principal};
use switchyard_store::{STARTS_KEPT, ScheduleRecord};

use crate::ServerState;
use crate::api::{Api, Operation};
use crate::extract::{self, Body, Lasting, Params, Segments, short};
use crate::openapi;
use crate::problem::Problem;

/// How many upcoming starts are shown.
const UPCOMING_DEFAULT: usize = 5;
const UPCOMING_MAX: usize = 100;

/// How many of the newest ticks are shown with their outcomes.
const STARTS_DEFAULT: usize = 10;

/// Longer than any useful name of a schedule or of a time zone.
const TEXT_BYTES_MAX: usize = 512;

/// Longer than the lines of any useful schedule.
const CRON_BYTES_MAX: usize = 4 * 1024;

/// When to start what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleBody {
    /// A registered workflow.
    workflow: String,
    /// Which of its versions; the newest at each start, if not given.
    version: Option<u32>,
    /// The input of its runs: any JSON.
    #[serde(default = "nothing")]
    input: Value,
    /// One expression a line: five fields (minute, hour, day of month, month, day of week), six with the second in
    /// front, a name such as `@hourly`, or `@every 10s`.
    cron: String,
    /// An IANA name such as `Europe/Berlin`; UTC if not given.
    time_zone: Option<String>,
    /// Each start is put off by a part of this, always the same for the same tick.
    jitter: Option<Lasting>,
    /// What happens at a tick while the run of an earlier one is under way; `skip` if not given.
    #[serde(default)]
    #[schemars(with = "Option<OverlapName>")]
    overlap: Overlap,
    /// What happens to ticks that passed while no server was running; `last` if not given.
    #[serde(default)]
    #[schemars(with = "Option<CatchUpName>")]
    catch_up: CatchUp,
    /// Start nothing until it is resumed.
    #[serde(default)]
    paused: bool,
    /// Labels of its runs, at most 16. They win over those of the workflow.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The default input of a run.
fn nothing() -> Value {
    json!({})
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the schema of `Overlap`")]
enum OverlapName {
    Skip,
    Queue,
    Allow,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the schema of `CatchUp`")]
enum CatchUpName {
    Skip,
    Last,
    All,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShowQuery {
    /// How many of its next starts to show, at most 100; 5 if not given.
    upcoming: Option<usize>,
    /// What became of how many of its newest ticks to show, at most 100; 10 if not given.
    starts: Option<usize>,
}

/// A span of time, both ends in it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackfillBody {
    #[schemars(extend("format" = "date-time"))]
    from: String,
    #[schemars(extend("format" = "date-time"))]
    until: String,
}

pub(super) fn register(api: &mut Api) {
    let list = api.operation("schedules", "listSchedules", "The schedules, by name").answer(
        200,
        "The schedules",
        openapi::list("schedules", openapi::listed(openapi::schedule(), "input")),
    );
    api.get("/v1/schedules", list, list_schedules);
    let body = api.schema::<ScheduleBody>();
    let put = api
        .operation(
            "schedules",
            "putSchedule",
            "Keep a schedule under this name, instead of the one that had it",
        )
        .body(body, true)
        .answer(200, "The schedule and its next tick", openapi::schedule())
        .problems([404]);
    api.put("/v1/schedules/{schedule}", put, put_schedule);
    let mut shown = openapi::schedule();
    shown["properties"]["upcoming"] =
        json!({ "type": "array", "items": openapi::moment(), "description": "Its next starts" });
    shown["properties"]["starts"] = json!({
        "type": "array",
        "items": openapi::schedule_start(),
        "description": "What became of its newest ticks, newest first",
    });
    let show = api
        .operation("schedules", "showSchedule", "A schedule, its next starts, and what became of the last")
        .query::<ShowQuery>()
        .answer(200, "The schedule", shown)
        .problems([400, 404]);
    api.get("/v1/schedules/{schedule}", show, show_schedule);
    let remove = api
        .operation("schedules", "removeSchedule", "Remove a schedule; runs that it started go on")
        .empty_answer(204, "It is gone")
        .problems([400, 404]);
    api.delete("/v1/schedules/{schedule}", remove, remove_schedule);
    register_verbs(api);
}

fn register_verbs(api: &mut Api) {
    let verb = |operation: Operation| {
        operation.answer(200, "The schedule as it is now", openapi::schedule()).problems([400, 404])
    };
    let pause = api.operation("schedules", "pauseSchedule", "Start nothing until it is resumed");
    api.post("/v1/schedules/{schedule}/pause", verb(pause), pause_schedule);
    let resume = api
        .operation("schedules", "resumeSchedule", "Start again, at the next tick")
        .description("Ticks that passed meanwhile are not made up for: use a backfill.");
    api.post("/v1/schedules/{schedule}/resume", verb(resume), resume_schedule);
    let run = api
        .operation("schedules", "runSchedule", "Start the workflow of a schedule now")
        .description("With its input, also while it is paused or the run of an earlier tick is under way.")
        .answer(202, "The run that was started", openapi::run_at())
        .problems([400, 404]);
    api.post("/v1/schedules/{schedule}/run", run, run_schedule);
    let body = api.schema::<BackfillBody>();
    let backfill = api
        .operation("schedules", "backfillSchedule", "Start the ticks of a span of time that were not started")
        .description("At most 1,000 ticks; `next` is where to go on if there are more.")
        .body(body, true)
        .answer(200, "The runs of the ticks, oldest first", backfilled())
        .problems([404]);
    api.post("/v1/schedules/{schedule}/backfill", backfill, backfill_schedule);
}

fn backfilled() -> Value {
    let run = json!({
        "type": "object",
        "required": ["tick", "run_id", "started"],
        "properties": {
            "tick": openapi::moment(),
            "run_id": openapi::run_id(),
            "started": { "type": "boolean", "description": "Whether it was started now, and not before" },
        },
    });
    let mut schema = openapi::list("runs", run);
    schema["properties"]["next"] = openapi::moment_or_null();
    schema
}

async fn list_schedules(State(state): State<ServerState>) -> Result<Json<Value>, Problem> {
    let records = state.engine.history().schedules().await?;
    let listed: Vec<ScheduleView> = records.into_iter().map(ScheduleView::listed).collect();
    Ok(Json(json!({ "schedules": listed })))
}

async fn put_schedule(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    Body(body): Body<ScheduleBody>,
) -> Result<Json<Value>, Problem> {
    short("cron", &body.cron, CRON_BYTES_MAX)?;
    let time_zone = body.time_zone.as_deref().unwrap_or("UTC");
    let schedule = Schedule {
        name: short("schedule", &name, TEXT_BYTES_MAX)?.into(),
        workflow: body.workflow.into(),
        version: body.version,
        input: state.engine.payloads().keep(&body.input).await?,
        cron: body.cron.into(),
        time_zone: short("time_zone", time_zone, TEXT_BYTES_MAX)?.into(),
        jitter: body.jitter.map_or(Duration::ZERO, |jitter| jitter.0),
        overlap: body.overlap,
        catch_up: body.catch_up,
        paused: body.paused,
        labels: super::runs::labels(body.labels)?,
    };
    let record =
        state.engine.put_schedule(&caller, &operation, schedule).await.map_err(|error| {
            match error {
        EngineError::BadRequest(why) => Problem::unprocessable("invalid_schedule", why).hint(
            "`cron` is a line such as `30 9 * * 1-5`, `@hourly` or `@every 10s`; `time_zone` is a name such as `Europe/Berlin`",
        ),
        other => other.into(),
    }
        })?;
    Ok(Json(document(&state, record).await.map_err(Problem::after_the_change)?))
}

async fn show_schedule(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    Params(query): Params<ShowQuery>,
) -> Result<Json<ScheduleView>, Problem> {
    let upcoming = at_most("upcoming", query.upcoming.unwrap_or(UPCOMING_DEFAULT), UPCOMING_MAX)?;
    let starts = at_most("starts", query.starts.unwrap_or(STARTS_DEFAULT), STARTS_KEPT)?;
    let now = state.engine.clock().now();
    Ok(Json(state.engine.history().schedule_shown(&name, now, upcoming, starts).await?))
}

fn at_most(field: &str, count: usize, max: usize) -> Result<usize, Problem> {
    if count > max {
        let detail = format!("`{field}` is {count}; it may be at most {max}");
        return Err(Problem::bad_request("invalid_query", detail));
    }
    Ok(count)
}

async fn remove_schedule(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
) -> Result<StatusCode, Problem> {
    state.engine.remove_schedule(&caller, &operation, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn pause_schedule(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
) -> Result<Json<Value>, Problem> {
    let record = state.engine.pause_schedule(&caller, &operation, &name, true).await?;
    Ok(Json(document(&state, record).await.map_err(Problem::after_the_change)?))
}

async fn resume_schedule(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
) -> Result<Json<Value>, Problem> {
    let record = state.engine.pause_schedule(&caller, &operation, &name, false).await?;
    Ok(Json(document(&state, record).await.map_err(Problem::after_the_change)?))
}

async fn run_schedule(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
) -> Result<(StatusCode, Json<RunAt>), Problem> {
    let run_id = state.engine.run_schedule(&caller, &operation, &name).await?;
    let run = state.engine.state(run_id).await.map_err(Problem::from).map_err(Problem::after_the_change)?;
    Ok((StatusCode::ACCEPTED, Json(RunAt { run_id, status: run.status() })))
}

async fn backfill_schedule(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    extract::Operation(operation): extract::Operation,
    Extension(caller): Extension<Principal>,
    Body(body): Body<BackfillBody>,
) -> Result<Json<Backfilled>, Problem> {
    let (from, until) = (moment("from", &body.from)?, moment("until", &body.until)?);
    if until < from {
        return Err(Problem::unprocessable("invalid_body", "`until` is before `from`"));
    }
    Ok(Json(state.engine.backfill(&caller, &operation, &name, from, until).await?))
}

fn moment(field: &str, text: &str) -> Result<Timestamp, Problem> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(100).collect();
        let detail = format!("`{field}`: `{shown}` is not a time such as 2026-01-31T12:00:00Z");
        Problem::unprocessable("invalid_body", detail)
    })
}

async fn document(state: &ServerState, record: ScheduleRecord) -> Result<Value, Problem> {
    Ok(serde_json::to_value(state.engine.history().schedule_view(record).await?)?)
}
