//! Tasks, as workers over HTTP get them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchyard_core::run::ClaimRef;
use switchyard_core::{Hash, RunId};

/// A task that a worker holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldTask {
    pub run_id: RunId,
    pub node: Arc<str>,
    /// The number of the claim. The worker sends it when it settles the task; an older claim is not valid.
    pub claim: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// `function`, or `function.<queue>` for a node with a `queue`.
    #[serde(rename = "type")]
    pub queue: Arc<str>,
    /// The function to call.
    pub function: Arc<str>,
    /// The input of the function.
    pub input: Value,
    /// A key that is the same for every attempt.
    pub idempotency_key: String,
    pub workflow: Arc<str>,
    pub definition: Hash,
    /// How long the claim lasts without a heartbeat.
    pub lease: String,
    /// The checkpoint that an earlier call saved for this node; null if there is none.
    #[serde(default)]
    pub checkpoint: Value,
    /// How long the call may take.
    pub timeout: Option<String>,
}

impl HeldTask {
    pub fn claim_ref(&self) -> ClaimRef {
        ClaimRef { run: self.run_id, node: self.node.clone(), claim: self.claim }
    }
}

/// Whether the worker should continue with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beat {
    Held,
    /// The run is being closed: the worker should stop, and release the task.
    Stop,
}
