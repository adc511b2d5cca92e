//! `POST /v1/tasks/claim`: a worker waits for tasks and takes them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::ir::queue_name::{self, FUNCTION};
use switchyard_core::run::{ClaimRef, Settlement, Task, TaskOutcome};
use switchyard_runtime::WorkerClaim;
use switchyard_runtime::worker::{Begun, Prepared, begin};
use switchyard_store::Want;
use tokio_util::sync::CancellationToken;

use super::{CLAIM, WAIT_MAX, lease, task_schema};
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Lasting, short};
use crate::guard::ClientGone;
use crate::openapi;
use crate::problem::Problem;
use crate::routes::control::NAME_BYTES_MAX;

const SLOTS_MAX: usize = 100;
const TYPES_MAX: usize = 32;
/// The highest number of held tasks that a worker can report.
const SLOTS_SAID_MAX: usize = 100_000;
const FUNCTIONS_MAX: usize = 256;
const WAIT_DEFAULT: Duration = Duration::from_secs(20);

/// What a worker can take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClaimRequest {
    /// Its name, for the histories of runs.
    worker: String,
    /// The functions that it serves, such as `enrich` or `enrich@2`; with a `*` at the end, all that begin so. It gets tasks
    /// of these and no others, except of the `types` that it names.
    functions: Option<Vec<String>>,
    /// Besides: `function.<queue>` for every task of nodes with that `queue`, or `function` for every function without one.
    /// `function`, if neither `functions` nor `types` are given.
    types: Option<Vec<String>>,
    /// At most this many tasks: 1 to 100; 1 if not given.
    slots: Option<usize>,
    /// How long to wait for work: at most `60s`; `20s` if not given.
    wait: Option<Lasting>,
    /// How long a task is this worker's without a heartbeat: `1s` to `1h`; `60s` if not given.
    lease: Option<Lasting>,
    /// How many tasks it holds now, for the list of workers.
    busy: Option<usize>,
    /// Of its program, for the list of workers; at most 200 bytes.
    version: Option<String>,
}

pub(super) fn register(api: &mut Api) {
    let body = api.schema::<ClaimRequest>();
    let claim = api
        .operation("workers", "claimTasks", "Wait for work, and take it")
        .keyless()
        .description(
            "Answers as soon as there is something, or with no task after `wait`. A task of a function that this \
             worker does not name is left to others.",
        )
        .body(body, true)
        .answer(200, "The tasks that are this worker's now", openapi::list("tasks", task_schema()));
    api.post(CLAIM, claim, claim_tasks);
}

async fn claim_tasks(
    State(state): State<ServerState>,
    Extension(ClientGone(gone)): Extension<ClientGone>,
    Body(request): Body<ClaimRequest>,
) -> Result<Json<Value>, Problem> {
    let wait = request.wait.map_or(WAIT_DEFAULT, |wait| wait.0).min(WAIT_MAX);
    let claim = said(&request)?;
    let desk = Desk { want: want(&state, request)?, state, gone };
    let holds = wait + desk.want.lease.unwrap_or(super::LEASE_DEFAULT);
    desk.state.engine.note_worker(&desk.want, claim, holds).await?;
    let tasks = desk.wait_for_tasks(wait).await?;
    desk.state.metrics.claimed(tasks.len());
    Ok(Json(json!({ "tasks": tasks })))
}

/// The worker's own description of itself, for the list of workers.
fn said(request: &ClaimRequest) -> Result<WorkerClaim, Problem> {
    let version = request.version.as_deref().unwrap_or_default();
    short("version", version, NAME_BYTES_MAX)?;
    let busy = request.busy.unwrap_or(0).min(SLOTS_SAID_MAX);
    let slots = busy + request.slots.unwrap_or(1).min(SLOTS_MAX);
    Ok(WorkerClaim { slots, busy, version: version.into() })
}

fn want(state: &ServerState, request: ClaimRequest) -> Result<Want, Problem> {
    short("worker", &request.worker, NAME_BYTES_MAX)?;
    let max = request.slots.unwrap_or(1);
    if !(1..=SLOTS_MAX).contains(&max) {
        return Err(invalid(format!("`slots` is {max}; it may be 1 to {SLOTS_MAX}")));
    }
    Ok(Want {
        queues: queues(state, request.functions, request.types)?.into(),
        worker: request.worker.into(),
        max,
        lease: Some(lease(request.lease.map(|lease| lease.0))?),
    })
}

fn invalid(detail: String) -> Problem {
    Problem::unprocessable("invalid_body", detail)
}

/// The queues that a worker may claim from.
fn queues(
    state: &ServerState,
    functions: Option<Vec<String>>,
    types: Option<Vec<String>>,
) -> Result<Vec<Arc<str>>, Problem> {
    let types = match (&functions, types) {
        (None, None) => vec![FUNCTION.to_owned()],
        (_, types) => types.unwrap_or_default(),
    };
    let functions = functions.unwrap_or_default();
    if functions.is_empty() && types.is_empty() {
        return Err(invalid("name `functions` that this worker serves, or `types`".to_owned()));
    }
    if functions.len() > FUNCTIONS_MAX || types.len() > TYPES_MAX {
        let most = format!("{FUNCTIONS_MAX} `functions` and {TYPES_MAX} `types`");
        return Err(invalid(format!("a worker may name at most {most}")));
    }
    let mut queues = Vec::new();
    for function in &functions {
        queues.push(function_queue(state, function)?);
    }
    for kind in &types {
        if !is_function_type(kind) {
            let detail = format!("`{kind}` is not a type that workers over HTTP may take");
            let problem = Problem::unprocessable("unclaimable_type", detail);
            return Err(problem.hint("`function`, or `function.<queue>`"));
        }
        queues.extend(queue_name::of_type(kind));
    }
    Ok(queues)
}

fn function_queue(state: &ServerState, function: &str) -> Result<Arc<str>, Problem> {
    if !queue_name::is_function_pattern(function) {
        let detail = format!("`{}` is not the name of a function", function.escape_debug());
        return Err(invalid(detail));
    }
    if state.engine.is_plain(function) {
        let detail = format!("function `{function}` is served by plain Redis workers");
        return Err(Problem::unprocessable("plain_function", detail)
            .hint("take it out of the setting `plain.functions`, or claim the type `function`"));
    }
    Ok(queue_name::of_function(function))
}

/// Whether workers over HTTP may claim this type. Switchyard itself executes all other types.
fn is_function_type(kind: &str) -> bool {
    matches!(kind, "function" | "function*")
        || kind.strip_prefix("function.").is_some_and(|name| !name.is_empty())
}

/// A task whose function the worker has to call.
struct Held {
    task: Task,
    prepared: Box<Prepared>,
}

impl Held {
    fn claim(&self) -> ClaimRef {
        ClaimRef { run: self.task.run, node: self.task.node.clone(), claim: self.task.claim }
    }
}

/// One request for tasks.
struct Desk {
    state: ServerState,
    want: Want,
    gone: CancellationToken,
}

impl Desk {
    async fn wait_for_tasks(&self, wait: Duration) -> Result<Vec<Value>, Problem> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            // Checked before the store is read: a request that is woken just as its time runs out still takes the task
            // that woke it, so that no task stays unclaimed.
            let last_look = self.gone.is_cancelled()
                || self.state.stop.is_cancelled()
                || tokio::time::Instant::now() >= until;
            let (_, tasks) = self.state.engine.step(Vec::new(), &self.want).await?;
            let (nothing_ready, some_claimed) = (tasks.is_empty(), !tasks.is_empty());
            let held = self.prepare_all(tasks).await?;
            if self.gone.is_cancelled() {
                self.hand_back(&held).await?;
                return Ok(Vec::new());
            }
            if !held.is_empty() || (last_look && nothing_ready) {
                return self.hand_over(held).await;
            }
            if some_claimed {
                continue;
            }
            tokio::select! {
                () = self.state.engine.work_ready(&self.want) => {}
                () = tokio::time::sleep_until(until) => {}
                () = self.gone.cancelled() => {}
                () = self.state.stop.cancelled() => {}
            }
        }
    }

    /// Settles the tasks that need no call; returns the others for the worker.
    async fn prepare_all(&self, tasks: Vec<Task>) -> Result<Vec<Held>, Problem> {
        let mut held = Vec::new();
        let mut settlements = Vec::new();
        for task in tasks {
            let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
            match begin(&self.state.services, &task).await {
                Ok(Begun::Call(prepared)) => held.push(Held { task, prepared }),
                Ok(Begun::Settle(outcome)) => settlements.push(Settlement { claim, outcome }),
                Err(_) => settlements.push(Settlement { claim, outcome: TaskOutcome::HandedBack }),
            }
        }
        self.settle(settlements).await?;
        Ok(held)
    }

    async fn hand_back(&self, held: &[Held]) -> Result<(), Problem> {
        let back = |held: &Held| Settlement { claim: held.claim(), outcome: TaskOutcome::HandedBack };
        self.settle(held.iter().map(back).collect()).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<(), Problem> {
        if !settlements.is_empty() {
            let nothing = Want::nothing(self.want.worker.clone());
            self.state.engine.step(settlements, &nothing).await?;
        }
        Ok(())
    }

    async fn hand_over(&self, held: Vec<Held>) -> Result<Vec<Value>, Problem> {
        let lease = self.want.lease.unwrap_or(super::LEASE_DEFAULT);
        let mut tasks = Vec::new();
        for held in held {
            self.state.engine.note_claim(&self.want.worker, held.claim());
            match held.prepared.describe(&self.state.services, &held.task, lease).await {
                Ok(task) => tasks.push(task),
                Err(error) => {
                    let outcome = error.outcome().unwrap_or(TaskOutcome::HandedBack);
                    self.settle(vec![Settlement { claim: held.claim(), outcome }]).await?;
                }
            }
        }
        Ok(tasks)
    }
}
