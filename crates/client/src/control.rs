//! Commands to a run: cancel, pause, resume, retry, signal, fork.

use serde::Serialize;
use serde_json::{Value, json};
use switchyard_api::{Forked, RunAt};
use switchyard_base::PatchOp;
use switchyard_core::RunId;

use crate::{Client, Error};

/// The node to fork from, and the changes to make.
#[derive(Clone, Debug, Serialize)]
pub struct Fork {
    /// The new run executes this node and all nodes after it again.
    pub from: String,
    /// Replaces the old run's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Changes to the graph.
    pub edits: Vec<PatchOp>,
}

impl Client {
    /// Cancels a run. Its history shows `by` and the reason. With `now`, tasks that workers hold are ended at once.
    pub async fn cancel(
        &self,
        run: RunId,
        by: &str,
        reason: &str,
        compensate: bool,
        now: bool,
    ) -> Result<RunAt, Error> {
        let body = json!({ "by": by, "reason": reason, "compensate": compensate, "now": now });
        self.command(run, "cancel", &body).await
    }

    /// Pauses a run: no further node starts until it is resumed.
    pub async fn pause(&self, run: RunId, by: &str) -> Result<RunAt, Error> {
        self.command(run, "pause", &json!({ "by": by })).await
    }

    /// Resumes a paused run.
    pub async fn resume(&self, run: RunId, by: &str) -> Result<RunAt, Error> {
        self.command(run, "resume", &json!({ "by": by })).await
    }

    /// Restarts an ended run from the nodes that failed.
    pub async fn retry(&self, run: RunId, by: &str) -> Result<RunAt, Error> {
        self.command(run, "retry", &json!({ "by": by })).await
    }

    /// Sends a named signal to a run, for a `wait` node.
    pub async fn signal(&self, run: RunId, name: &str, payload: &Value) -> Result<RunAt, Error> {
        let path = ["v1", "runs", &run.to_string(), "signals", name];
        self.change(&path, &json!({ "payload": payload })).await
    }

    /// Starts a new run from a node of an old one.
    pub async fn fork(&self, run: RunId, fork: &Fork) -> Result<Forked, Error> {
        self.change(&["v1", "runs", &run.to_string(), "fork"], fork).await
    }

    async fn command(&self, run: RunId, verb: &str, body: &Value) -> Result<RunAt, Error> {
        self.change(&["v1", "runs", &run.to_string(), verb], body).await
    }
}
