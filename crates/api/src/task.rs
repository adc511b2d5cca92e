//! What a worker over HTTP is handed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchyard_core::run::ClaimRef;
use switchyard_core::{Hash, RunId};

/// A task that is a worker's now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldTask {
    pub run_id: RunId,
    pub node: Arc<str>,
    /// Say it when settling: an older claim does not count.
    pub claim: u32,
    /// From 1.
    pub attempt: u32,
    /// `function`, or `function.<queue>` for a node with a `queue`.
    #[serde(rename = "type")]
    pub queue: Arc<str>,
    /// What to call.
    pub function: Arc<str>,
    /// What to call it with.
    pub input: Value,
    /// The same for every attempt.
    pub idempotency_key: String,
    pub workflow: Arc<str>,
    pub definition: Hash,
    /// How long the claim lasts without a heartbeat.
    pub lease: String,
    /// What was kept for this node before; null if nothing was.
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

/// Whether a task is to be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beat {
    Held,
    /// The run is being closed: stop, and release the task.
    Stop,
}
