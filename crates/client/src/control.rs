//! Changing the course of a run.

use serde::Serialize;
use serde_json::{Value, json};
use switchyard_api::{Forked, RunAt};
use switchyard_base::PatchOp;
use switchyard_core::RunId;

use crate::{Client, Error};

/// Where to fork from, and what to change.
#[derive(Clone, Debug, Serialize)]
pub struct Fork {
    /// This node and everything after it is done again.
    pub from: String,
    /// Instead of the old run's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Changes to the graph.
    pub edits: Vec<PatchOp>,
}

impl Client {
    /// Cancels a run. `by` and the reason are for its history. With `now`, what workers hold of it is ended at once.
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

    /// Starts no further node of a run until it is resumed.
    pub async fn pause(&self, run: RunId, by: &str) -> Result<RunAt, Error> {
        self.command(run, "pause", &json!({ "by": by })).await
    }

    /// Takes back a pause.
    pub async fn resume(&self, run: RunId, by: &str) -> Result<RunAt, Error> {
        self.command(run, "resume", &json!({ "by": by })).await
    }

    /// Starts an ended run over from what failed.
    pub async fn retry(&self, run: RunId, by: &str) -> Result<RunAt, Error> {
        self.command(run, "retry", &json!({ "by": by })).await
    }

    /// Gives a run news by name, for a `wait` node.
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
