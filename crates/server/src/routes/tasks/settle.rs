//! `POST /v1/tasks/heartbeat`, `complete`, `fail`, `release`

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::NodeError;
use switchyard_core::run::{ClaimRef, NodeState, Settled, Settlement, TaskOutcome};
use switchyard_core::yard::Standing;
use switchyard_lang::duration::HumanDuration;
use switchyard_runtime::EngineError;
use switchyard_runtime::kinds::STORE_UNAVAILABLE;
use switchyard_store::{StoreError, Want};

use super::held::Held;
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
        operation.body(body, true).answer(200, "It counts", settled.clone()).problems([404, 409])
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
    present(&state, &claim).await?;
    let standings = state.engine.hot().heartbeat(std::slice::from_ref(&claim), Some(lease)).await?;
    let standing = standings.into_iter().next().unwrap_or(Standing::Lost);
    if standing == Standing::Lost {
        return Err(why_not(&state, &claim).await?);
    }
    state.held.extend(&claim, state.engine.clock().now().plus(lease));
    Ok(Json(json!({ "standing": standing })))
}

async fn complete(
    State(state): State<ServerState>,
    Body(body): Body<CompleteBody>,
) -> Result<Json<Value>, Problem> {
    let claim = body.claim.read()?;
    let outcome = match present(&state, &claim).await? {
        Some(held) => match held.prepared.succeed(&state.services, &held.task, &body.output).await {
            Err(error) if *error.code == *STORE_UNAVAILABLE => {
                return Err(StoreError::unavailable(error.message).into());
            }
            Err(error) => TaskOutcome::Failed(error),
            Ok(outcome) => outcome,
        },
        None => TaskOutcome::Succeeded(state.engine.payloads().keep(&body.output).await?),
    };
    settle(&state, claim, outcome).await
}

async fn fail(State(state): State<ServerState>, Body(body): Body<FailBody>) -> Result<Json<Value>, Problem> {
    let claim = body.claim.read()?;
    let code = body.error.code.as_deref().unwrap_or("failed");
    let error = NodeError {
        code: short("error.code", code, NAME_BYTES_MAX)?.into(),
        message: short("error.message", &body.error.message, REASON_BYTES_MAX)?.into(),
        retryable: body.error.retryable.unwrap_or(true),
    };
    present(&state, &claim).await?;
    settle(&state, claim, TaskOutcome::Failed(error)).await
}

async fn release(
    State(state): State<ServerState>,
    Body(body): Body<ClaimBody>,
) -> Result<Json<Value>, Problem> {
    let claim = body.read()?;
    present(&state, &claim).await?;
    settle(&state, claim, TaskOutcome::HandedBack).await
}

/// Makes limits count to the moment, and refuses claims that no worker over HTTP can have.
pub(super) async fn present(state: &ServerState, claim: &ClaimRef) -> Result<Option<Arc<Held>>, Problem> {
    let held = state.held.get(claim);
    // First: taking too long is a failed attempt, which is more than a lease that ran out.
    if let Some(limit) = held.as_ref().and_then(|held| held.overdue(state.engine.clock().now())) {
        let error = timed_out(limit);
        let problem = Problem::conflict("task_timed_out", &error.message);
        apply(state, claim, TaskOutcome::Failed(error)).await?;
        return Err(problem);
    }
    // A lease that has run out is taken back before anything is said about it, not at the next pass of the duty.
    state.engine.hot().reclaim().await?;
    if held.is_none() {
        require_function(state, claim).await?;
    }
    Ok(held)
}

fn timed_out(limit: Duration) -> NodeError {
    NodeError::retryable("timeout", format!("it did not end within {}", HumanDuration(limit)))
}

/// Claims of tasks that Switchyard executes itself are nobody else's business.
async fn require_function(state: &ServerState, claim: &ClaimRef) -> Result<(), Problem> {
    let Some(run) = state.engine.hot().snapshot(claim.run).await? else { return Ok(()) };
    match run.ir.find(&claim.node) {
        Some(ix) if run.ir.node(ix).queue.starts_with("function") => Ok(()),
        Some(_) => Err(Problem::conflict("not_a_worker_task", "this task is executed by Switchyard itself")),
        None => Err(unknown_node(claim)),
    }
}

async fn settle(state: &ServerState, claim: ClaimRef, outcome: TaskOutcome) -> Result<Json<Value>, Problem> {
    apply(state, &claim, outcome).await?;
    Ok(Json(json!({ "settled": "applied" })))
}

async fn apply(state: &ServerState, claim: &ClaimRef, outcome: TaskOutcome) -> Result<(), Problem> {
    let said = outcome.as_str();
    let settlement = Settlement { claim: claim.clone(), outcome };
    let (settled, _) = state.engine.hot().step(vec![settlement], &Want::nothing("api".into())).await?;
    if settled.first() != Some(&Settled::Applied) {
        state.metrics.settled("too_late");
        return Err(why_not(state, claim).await?);
    }
    state.metrics.settled(said);
    if let Some(held) = state.held.get(claim) {
        let took = state.engine.clock().now().since(held.since);
        state.metrics.executed(&held.task.queue, said, took);
    }
    state.held.forget(claim);
    Ok(())
}

/// Why a claim does not count. Nothing has changed.
pub(super) async fn why_not(state: &ServerState, claim: &ClaimRef) -> Result<Problem, Problem> {
    state.held.forget(claim);
    let run = state.engine.state(claim.run).await.map_err(|error: EngineError| Problem::from(error))?;
    let Some(ix) = run.ir.find(&claim.node) else { return Ok(unknown_node(claim)) };
    let node = run.node(ix);
    if claim.claim > node.claim {
        return Ok(Problem::conflict(
            "unknown_claim",
            format!("`{}` was never claimed that often", claim.node),
        ));
    }
    let lost = claim.claim < node.claim || node.state == NodeState::Ready;
    Ok(if lost {
        Problem::conflict(
            "lease_expired",
            "the lease ran out, or the task was given back; nothing has changed",
        )
        .hint("send heartbeats more often than the lease, or ask for a longer one")
    } else {
        Problem::conflict("already_settled", "this claim was settled before; nothing has changed")
    })
}

fn unknown_node(claim: &ClaimRef) -> Problem {
    Problem::not_found("unknown_node", format!("there is no node `{}` in {}", claim.node, claim.run))
}
