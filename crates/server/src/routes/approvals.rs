//! `/v1/approvals`: decisions that runs wait for.

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_api::Approval;
use switchyard_core::run::Decision;
use switchyard_core::{ApprovalId, OperationId};
use switchyard_runtime::Principal;
use switchyard_store::{ApprovalFilter, ApprovalStatus};

use super::control::{REASON_BYTES_MAX, author};
use super::runs::{run_id, run_now};
use crate::ServerState;
use crate::api::Api;
use crate::extract::{Operation, OptionalBody, Params, Segments, short};
use crate::openapi;
use crate::problem::Problem;

/// Which approvals to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only those of this run.
    run: Option<String>,
    /// Also those that were decided; otherwise only pending ones.
    #[serde(default)]
    all: bool,
}

/// A decision.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecideBody {
    /// Who decides, for the run's history.
    by: Option<String>,
    /// Why, for the run's history.
    #[serde(default)]
    comment: String,
}

pub(super) fn register(api: &mut Api) {
    let list = api
        .operation("approvals", "listApprovals", "Approvals, newest first")
        .query::<ListQuery>()
        .answer(
            200,
            "The approvals",
            openapi::list("approvals", openapi::listed(openapi::approval(), "payload")),
        )
        .problems([400]);
    api.get("/v1/approvals", list, list_approvals);
    let show = api
        .operation("approvals", "showApproval", "An approval with its whole payload")
        .answer(200, "The approval", openapi::approval())
        .problems([400, 404]);
    api.get("/v1/approvals/{approval}", show, show_approval);
    let body = api.schema::<DecideBody>();
    let approve = api
        .operation("approvals", "approve", "Approve: the run goes on")
        .body(body.clone(), false)
        .answer(200, "Decided; where the run stands now", openapi::run_at())
        .problems([404, 409]);
    api.post("/v1/approvals/{approval}/approve", approve, approve_one);
    let reject = api
        .operation("approvals", "reject", "Reject: the node fails")
        .body(body, false)
        .answer(200, "Decided; where the run stands now", openapi::run_at())
        .problems([404, 409]);
    api.post("/v1/approvals/{approval}/reject", reject, reject_one);
}

async fn list_approvals(
    State(state): State<ServerState>,
    Params(query): Params<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let run = query.run.map(|run| run_id(&run)).transpose()?;
    let status = (!query.all).then_some(ApprovalStatus::Pending);
    let records = state.engine.history().approvals(&ApprovalFilter { run, status }).await?;
    let listed: Vec<Approval> = records.into_iter().map(Approval::listed).collect();
    Ok(Json(json!({ "approvals": listed })))
}

async fn show_approval(
    State(state): State<ServerState>,
    Segments(approval): Segments<String>,
) -> Result<Json<Approval>, Problem> {
    Ok(Json(state.engine.history().approval(&ApprovalId::new(&*approval)).await?))
}

async fn approve_one(
    State(state): State<ServerState>,
    Segments(approval): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<DecideBody>,
) -> Result<Json<Value>, Problem> {
    decide(&state, &approval, &operation, &caller, &body, Decision::Approved).await
}

async fn reject_one(
    State(state): State<ServerState>,
    Segments(approval): Segments<String>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    OptionalBody(body): OptionalBody<DecideBody>,
) -> Result<Json<Value>, Problem> {
    decide(&state, &approval, &operation, &caller, &body, Decision::Rejected).await
}

async fn decide(
    state: &ServerState,
    approval: &str,
    operation: &OperationId,
    caller: &Principal,
    body: &DecideBody,
    decision: Decision,
) -> Result<Json<Value>, Problem> {
    let comment = short("comment", &body.comment, REASON_BYTES_MAX)?;
    let by = author(body.by.as_ref(), caller)?;
    let run = state.engine.decide(&by, &ApprovalId::new(approval), operation, decision, comment).await?;
    run_now(state, run).await
}
