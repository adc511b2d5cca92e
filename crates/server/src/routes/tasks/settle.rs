//! `POST /v1/tasks/heartbeat`, `complete`, `fail`, `release`: a worker keeps or settles a task.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::NodeError;
use switchyard_core::in_flight::ClaimStatus;
use switchyard_core::run::{ClaimRef, NodeRun, NodeState, Settled, Settlement, Task};
use switchyard_runtime::EngineError;
use switchyard_runtime::kinds::TIMEOUT;
use switchyard_runtime::worker::{Report, finish};
use switchyard_store::Want;

use super::{ClaimBody, lease};
use crate::ServerState;
use crate::api::{Api, Operation};
use crate::extract::{Body, Lasting, short};
use crate::problem::Problem;
use crate::routes::control::{NAME_BYTES_MAX, REASON_BYTES_MAX};

#[derive(Debug, Deserialize, JsonSchema)]
struct HeartbeatBody {
    #[serde(flatten)]
    claim: ClaimBody,
    /// From now on: `1s` to `1h`; `60s` if not given.
    lease: Option<Lasting>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CompleteBody {
    #[serde(flatten)]
    claim: ClaimBody,
    /// Any JSON.
    #[serde(default)]
    output: Value,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FailBody {
    #[serde(flatten)]
    claim: ClaimBody,
    error: ErrorBody,
}

/// Why the call failed. The node's retry policy decides whether this was the last attempt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ErrorBody {
    /// A stable word for programs; `failed` if not given.
    code: Option<String>,
    /// A sentence for people.
    message: String,
    /// Whether trying the same thing again can help; true if not given.
    retryable: Option<bool>,
}

pub(super) fn register(api: &mut Api) {
    let settled = json!({
        "type": "object",
        "required": ["settled"],
        "properties": { "settled": { "type": "string", "const": "applied" } },
    });
    let settling = |operation: Operation, body: Value| {
        operation.keyless().body(body, true).answer(200, "It counts", settled.clone()).problems([404, 409])
    };
    let body = api.schema::<CompleteBody>();
    let operation = api.operation("workers", "completeTask", "The call succeeded");
    api.post("/v1/tasks/complete", settling(operation, body), complete);
    let body = api.schema::<FailBody>();
    let operation = api.operation("workers", "failTask", "The call failed");
    api.post("/v1/tasks/fail", settling(operation, body), fail);
    let body = api.schema::<ClaimBody>();
    let operation =
        api.operation("workers", "releaseTask", "Not done, not failed: another worker may take it");
    api.post("/v1/tasks/release", settling(operation, body), release);
    let body = api.schema::<HeartbeatBody>();
    let operation = api
        .operation("workers", "heartbeat", "Still at it: extend the lease")
        .keyless()
        .body(body, true)
        .answer(200, "The task is still this worker's", standing_schema())
        .problems([404, 409]);
    api.post("/v1/tasks/heartbeat", operation, heartbeat);
}

pub(super) fn standing_schema() -> Value {
    json!({
        "type": "object",
        "required": ["standing"],
        "properties": {
            "standing": {
                "type": "string",
                "enum": ["held", "stop"],
                "description": "`stop`: the run is being closed; stop, and release the task",
            },
        },
    })
}

async fn heartbeat(
    State(state): State<ServerState>,
    Body(body): Body<HeartbeatBody>,
) -> Result<Json<Value>, Problem> {
    let claim = body.claim.read()?;
    let lease = lease(body.lease.map(|lease| lease.0))?;
    held(&state, &claim).await?;
    match state.engine.heartbeat(&claim, lease).await? {
        ClaimStatus::Lost => Err(why_not(&state, &claim).await?),
        standing => Ok(Json(json!({ "standing": standing }))),
    }
}

async fn complete(
    State(state): State<ServerState>,
    Body(body): Body<CompleteBody>,
) -> Result<Json<Value>, Problem> {
    settle(&state, &body.claim.read()?, Report::Succeeded(body.output)).await
}

async fn fail(State(state): State<ServerState>, Body(body): Body<FailBody>) -> Result<Json<Value>, Problem> {
    let claim = body.claim.read()?;
    let code = body.error.code.as_deref().unwrap_or("failed");
    let error = NodeError {
        code: short("error.code", code, NAME_BYTES_MAX)?.into(),
        message: short("error.message", &body.error.message, REASON_BYTES_MAX)?.into(),
        retryable: body.error.retryable.unwrap_or(true),
        retry_after: None,
    };
    settle(&state, &claim, Report::Failed(error)).await
}

async fn release(
    State(state): State<ServerState>,
    Body(body): Body<ClaimBody>,
) -> Result<Json<Value>, Problem> {
    settle(&state, &body.read()?, Report::Released).await
}

/// The task of a claim, if the claim is valid and the task is one for workers over HTTP.
pub(super) async fn held(state: &ServerState, claim: &ClaimRef) -> Result<Task, Problem> {
    match state.engine.held_task(claim).await? {
        Some(task) if task.queue.starts_with("function") => Ok(task),
        Some(_) => Err(not_a_worker_task()),
        None => Err(why_not(state, claim).await?),
    }
}

async fn settle(state: &ServerState, claim: &ClaimRef, report: Report) -> Result<Json<Value>, Problem> {
    let task = match held(state, claim).await {
        Ok(task) => task,
        Err(problem) => {
            state.metrics.settled("too_late");
            return Err(problem);
        }
    };
    let outcome = finish(&state.services, &task, report).await?;
    let said = outcome.as_str();
    let settlement = Settlement { claim: claim.clone(), outcome };
    state.engine.forget_claim(claim);
    let (settled, _) = state.engine.step(vec![settlement], &Want::nothing("api".into())).await?;
    if settled.first() != Some(&Settled::Applied) {
        state.metrics.settled("too_late");
        return Err(why_not(state, claim).await?);
    }
    state.metrics.settled(said);
    if let Some(limit) = task.limit {
        state.metrics.executed(&task.queue, said, state.engine.clock().now().since(limit.began()));
    }
    Ok(Json(json!({ "settled": "applied" })))
}

/// The reason why a claim is not valid. The request has changed nothing.
pub(super) async fn why_not(state: &ServerState, claim: &ClaimRef) -> Result<Problem, Problem> {
    let run = state.engine.state(claim.run).await.map_err(|error: EngineError| Problem::from(error))?;
    let Some(ix) = run.ir.find(&claim.node) else {
        let detail = format!("there is no node `{}` in {}", claim.node, claim.run);
        return Ok(Problem::not_found("unknown_node", detail));
    };
    if !run.ir.node(ix).queue.starts_with("function") {
        return Ok(not_a_worker_task());
    }
    let node = run.node(ix);
    if claim.claim > node.claim {
        return Ok(Problem::conflict(
            "unknown_claim",
            format!("`{}` was never claimed that often", claim.node),
        ));
    }
    if let Some(message) = timed_out(node, claim.claim) {
        return Ok(Problem::conflict("task_timed_out", message));
    }
    let lost = claim.claim < node.claim || node.state == NodeState::Ready;
    Ok(if lost {
        Problem::conflict(
            "lease_expired",
            "the lease ran out, the attempt took too long, or the task was given back; nothing has changed",
        )
        .hint("send heartbeats more often than the lease, or ask for a longer one")
    } else {
        Problem::conflict("already_settled", "this claim was settled before; nothing has changed")
    })
}

/// The error message of an attempt that exceeded its time limit, if this claim is the node's newest.
fn timed_out(node: &NodeRun, claim: u32) -> Option<&str> {
    let ended = matches!(node.state, NodeState::Waiting | NodeState::Failed);
    let error = node.error.as_deref().filter(|error| *error.code == *TIMEOUT)?;
    (ended && claim == node.claim).then_some(&*error.message)
}

/// The problem for a claim of a task that Switchyard executes itself.
fn not_a_worker_task() -> Problem {
    Problem::conflict("not_a_worker_task", "this task is executed by Switchyard itself")
}
