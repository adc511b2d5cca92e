//! `/v1/tasks`: workers in any language. A worker claims tasks, keeps them with heartbeats, and reports their outcomes.
//! A worker that stops sending heartbeats loses its tasks to another.

mod claim;
mod logs;
mod progress;
mod settle;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::run::ClaimRef;

use super::runs::run_id;
use crate::api::Api;
use crate::openapi;
use crate::problem::Problem;

/// The route on which workers wait for tasks.
pub(crate) const CLAIM: &str = "/v1/tasks/claim";

/// The longest time that a claim waits for tasks.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

const LEASE_DEFAULT: Duration = Duration::from_secs(60);
const LEASE_MIN: Duration = Duration::from_secs(1);
const LEASE_MAX: Duration = Duration::from_secs(60 * 60);

/// Which claim it is about: as `POST /v1/tasks/claim` answered it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct ClaimBody {
    #[schemars(regex(pattern = r"^run_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    run_id: String,
    node: String,
    claim: u32,
}

impl ClaimBody {
    fn read(&self) -> Result<ClaimRef, Problem> {
        Ok(ClaimRef { run: run_id(&self.run_id)?, node: self.node.as_str().into(), claim: self.claim })
    }
}

fn lease(asked: Option<Duration>) -> Result<Duration, Problem> {
    match asked.unwrap_or(LEASE_DEFAULT) {
        lease if (LEASE_MIN..=LEASE_MAX).contains(&lease) => Ok(lease),
        _ => Err(Problem::unprocessable("invalid_body", "`lease` may be 1s to 1h")),
    }
}

pub(super) fn register(api: &mut Api) {
    claim::register(api);
    settle::register(api);
    progress::register(api);
    logs::register(api);
}

/// The schema of a task that a worker gets.
fn task_schema() -> Value {
    json!({
        "type": "object",
        "required": ["run_id", "node", "claim", "attempt", "type", "function", "input", "idempotency_key"],
        "properties": {
            "run_id": openapi::run_id(),
            "node": { "type": "string" },
            "claim": { "type": "integer", "description": "Say it when settling: an older claim does not count" },
            "attempt": { "type": "integer", "description": "From 1" },
            "type": { "type": "string", "description": "`function`, or `function.<queue>` for a node with a `queue`" },
            "function": { "type": "string", "description": "What to call" },
            "input": { "description": "What to call it with: any JSON" },
            "idempotency_key": { "type": "string", "description": "The same for every attempt" },
            "checkpoint": { "description": "What was kept for this node before: any JSON; null if nothing" },
            "workflow": { "type": "string" },
            "definition": { "type": "string", "description": "The hash of the run's definition" },
            "lease": { "type": "string", "description": "How long the claim lasts without a heartbeat" },
            "traceparent": { "type": ["string", "null"], "description": "To be passed on with calls (W3C trace context)" },
            "tracestate": { "type": ["string", "null"], "description": "To be passed on beside it" },
            "timeout": { "type": ["string", "null"], "description": "How long the call may take" },
        },
    })
}
