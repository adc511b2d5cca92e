//! `POST /v1/tasks/claim`

use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::run::{ClaimRef, Settlement, Task, TaskOutcome};
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
const WAIT_DEFAULT: Duration = Duration::from_secs(20);

/// What a worker can take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClaimRequest {
    /// Its name, for the histories of runs.
    worker: String,
    /// `function`, `function.<queue>`, or with a `*` at the end; `function` if not given.
    types: Option<Vec<String>>,
    /// At most this many tasks: 1 to 100; 1 if not given.
    slots: Option<usize>,
    /// How long to wait for work: at most `60s`; `20s` if not given.
    wait: Option<Lasting>,
    /// How long a task is this worker's without a heartbeat: `1s` to `1h`; `60s` if not given.
    lease: Option<Lasting>,
}

pub(super) fn register(api: &mut Api) {
    let body = api.schema::<ClaimRequest>();
    let claim = api
        .operation("workers", "claimTasks", "Wait for work, and take it")
        .keyless()
        .description("Answers as soon as there is something, or with no task after `wait`.")
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
    let desk = Desk { want: want(request)?, state, gone };
    let tasks = desk.wait_for_tasks(wait).await?;
    desk.state.metrics.claimed(tasks.len());
    Ok(Json(json!({ "tasks": tasks })))
}

fn want(request: ClaimRequest) -> Result<Want, Problem> {
    let invalid = |detail: String| Problem::unprocessable("invalid_body", detail);
    short("worker", &request.worker, NAME_BYTES_MAX)?;
    let types = request.types.unwrap_or_else(|| vec!["function".to_owned()]);
    if types.is_empty() || types.len() > TYPES_MAX {
        return Err(invalid(format!("`types` may have 1 to {TYPES_MAX} entries")));
    }
    if let Some(wrong) = types.iter().find(|name| !is_function(name)) {
        let detail = format!("`{wrong}` is not a type that workers over HTTP may take");
        return Err(
            Problem::unprocessable("unclaimable_type", detail).hint("`function`, or `function.<queue>`")
        );
    }
    let max = request.slots.unwrap_or(1);
    if !(1..=SLOTS_MAX).contains(&max) {
        return Err(invalid(format!("`slots` is {max}; it may be 1 to {SLOTS_MAX}")));
    }
    Ok(Want {
        worker: request.worker.into(),
        queues: types.into_iter().map(Into::into).collect(),
        max,
        lease: Some(lease(request.lease.map(|lease| lease.0))?),
    })
}

/// Every other type is executed by Switchyard itself.
fn is_function(queue: &str) -> bool {
    matches!(queue, "function" | "function*")
        || queue.strip_prefix("function.").is_some_and(|name| !name.is_empty())
}

/// A task that its worker has to call.
struct Held {
    task: Task,
    prepared: Box<Prepared>,
}

impl Held {
    fn claim(&self) -> ClaimRef {
        ClaimRef { run: self.task.run, node: self.task.node.clone(), claim: self.task.claim }
    }
}

/// One request for work.
struct Desk {
    state: ServerState,
    want: Want,
    gone: CancellationToken,
}

impl Desk {
    async fn wait_for_tasks(&self, wait: Duration) -> Result<Vec<Value>, Problem> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            // Checked before the store is asked: a request that is woken just as its time runs out still takes what it was
            // woken for, so that no task lies there unseen.
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

    /// Settles what needs no call; the rest is for the worker.
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
