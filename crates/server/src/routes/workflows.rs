//! `/v1/workflows`: registered definitions; `/v1/validate`: checks a definition.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_base::Diagnostics;
use switchyard_lang::{Definition, Program};
use switchyard_runtime::Principal;
use switchyard_store::WorkflowRecord;

use crate::ServerState;
use crate::api::Api;
use crate::extract::{Body, Operation, Params, Segments};
use crate::openapi;
use crate::problem::Problem;

/// The most versions of a workflow that are listed, newest first.
const VERSIONS_MAX: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShowQuery {
    /// Which version; the newest, if not given.
    version: Option<u32>,
}

pub(super) fn register(api: &mut Api) {
    let list = api
        .operation("workflows", "listWorkflows", "The newest version of every registered workflow")
        .answer(200, "The workflows, by name", openapi::list("workflows", openapi::workflow()));
    api.get("/v1/workflows", list, list_workflows);
    let definition = api.schema::<Definition>();
    let register = api
        .operation("workflows", "registerWorkflow", "Keep a definition under its name")
        .description("A new version, unless the newest one is the same definition already.")
        .body(definition.clone(), true)
        .answer(200, "The version", openapi::workflow());
    api.post("/v1/workflows", register, register_workflow);
    let mut shown = openapi::workflow();
    shown["properties"]["source"] = definition.clone();
    shown["properties"]["versions"] = json!({ "type": "array", "items": openapi::workflow() });
    let show = api
        .operation("workflows", "showWorkflow", "A registered workflow, its definition, and its versions")
        .query::<ShowQuery>()
        .answer(200, "The workflow; `versions` are the newest 100, newest first", shown)
        .problems([400, 404]);
    api.get("/v1/workflows/{name}", show, show_workflow);
    let validate = api
        .operation("workflows", "validate", "Check a definition without keeping it")
        .keyless()
        .body(definition, true)
        .answer(200, "Whether it is valid, and if not, everything that is wrong with it", validated());
    api.post("/v1/validate", validate, validate_definition);
}

fn validated() -> Value {
    json!({
        "type": "object",
        "required": ["valid", "problems"],
        "properties": {
            "valid": { "type": "boolean" },
            "name": { "type": "string" },
            "nodes": { "type": "integer" },
            "definition": { "type": "string", "description": "The hash of the definition" },
            "problems": { "type": "array", "items": { "type": "object" } },
        },
    })
}

async fn list_workflows(State(state): State<ServerState>) -> Result<Json<Value>, Problem> {
    let records = state.engine.history().workflows().await?;
    Ok(Json(json!({ "workflows": records })))
}

async fn register_workflow(
    State(state): State<ServerState>,
    Operation(operation): Operation,
    Extension(caller): Extension<Principal>,
    Body(definition): Body<Value>,
) -> Result<Json<WorkflowRecord>, Problem> {
    let program = Arc::new(Program::compile_value(&definition)?);
    Ok(Json(state.engine.register_workflow(&caller, &operation, &program).await?))
}

async fn show_workflow(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
    Params(query): Params<ShowQuery>,
) -> Result<Json<Value>, Problem> {
    let history = state.engine.history();
    let shown = history.workflow(&name, query.version).await?;
    let versions = history.workflow_versions(&name, VERSIONS_MAX).await?;
    let text = history.definition(shown.definition).await?;
    let mut document = serde_json::to_value(&shown)?;
    document["source"] = serde_json::from_str(&text)?;
    document["versions"] = serde_json::to_value(versions)?;
    Ok(Json(document))
}

async fn validate_definition(Body(definition): Body<Value>) -> Json<Value> {
    Json(match Program::compile_value(&definition) {
        Ok(program) => valid(&program),
        Err(problems) => invalid(&problems),
    })
}

fn valid(program: &Program) -> Value {
    json!({
        "valid": true,
        "name": program.ir.name,
        "nodes": program.ir.steps().count(),
        "definition": program.hash,
        "problems": [],
    })
}

fn invalid(problems: &Diagnostics) -> Value {
    json!({ "valid": false, "problems": problems.iter().collect::<Vec<_>>() })
}
