//! The worker protocol: claims tasks, keeps them with heartbeats, and settles them.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use switchyard_api::{Beat, HeldTask};
use switchyard_base::HumanDuration;
use switchyard_core::run::{ClaimRef, LogLine};

use crate::request::{list, whole};
use crate::retry::Repeat;
use crate::{Client, Error};

/// A worker's request for tasks.
#[derive(Clone, Debug)]
pub struct ClaimTasks {
    /// The worker's name, for the histories of runs.
    pub worker: String,
    /// The functions that the worker serves; a `*` at the end matches every function with that prefix.
    pub functions: Vec<String>,
    /// Further types of task: `function.<queue>` for every task of nodes with that `queue`, or `function` for every
    /// function without one.
    pub types: Vec<String>,
    /// The most tasks to take, up to 100.
    pub slots: usize,
    /// How long to wait for tasks, up to a minute.
    pub wait: Duration,
    /// How long the worker keeps a task without a heartbeat: a second to an hour.
    pub lease: Duration,
    /// How many tasks the worker holds now, for the list of workers.
    pub busy: usize,
    /// The version of the worker's program, for the list of workers.
    pub version: String,
}

/// Why a call failed. The node's retry policy decides whether this was the last attempt.
#[derive(Clone, Debug, Serialize)]
pub struct TaskFailure {
    /// A stable identifier for programs.
    pub code: String,
    /// A sentence for humans.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
}

impl Client {
    /// Waits for tasks and claims them. Returns no task if there was none within `wait`. Not repeated: if the response
    /// is lost, the server takes the tasks back when their leases expire.
    pub async fn claim(&self, claim: &ClaimTasks) -> Result<Vec<HeldTask>, Error> {
        let lasting = |length| HumanDuration(length).to_string();
        let body = json!({
            "worker": claim.worker,
            "functions": claim.functions,
            "types": claim.types,
            "slots": claim.slots,
            "wait": lasting(claim.wait),
            "lease": lasting(claim.lease),
            "busy": claim.busy,
            "version": claim.version,
        });
        let request = self.request(Method::POST, &["v1", "tasks", "claim"]).json(&body);
        let answer = whole(request.timeout(claim.wait + Duration::from_secs(30))).await;
        list(self.read(&self.checked(answer)?.1)?, "tasks").map_err(|error| self.strange(error.to_string()))
    }

    /// Renews the lease of a task. Returns whether the worker should continue.
    pub async fn heartbeat(&self, claim: &ClaimRef, lease: Duration) -> Result<Beat, Error> {
        let more = json!({ "lease": HumanDuration(lease).to_string() });
        self.say("heartbeat", claim, more).await
    }

    /// Stores a checkpoint for the next worker that gets the node.
    pub async fn checkpoint(&self, claim: &ClaimRef, value: &Value) -> Result<Beat, Error> {
        self.say("checkpoint", claim, json!({ "value": value })).await
    }

    /// Streams output to followers of the run: up to 256 chunks of at most 4,096 bytes.
    pub async fn chunks(&self, claim: &ClaimRef, chunks: &[Value]) -> Result<Beat, Error> {
        // Not repeated: followers would see the chunks twice.
        let body = about(claim, json!({ "chunks": chunks }));
        self.standing(self.post(&["v1", "tasks", "chunks"], &body, Repeat::Harmful).await?)
    }

    /// Stores 1 to 1,000 log lines of a task.
    pub async fn log(&self, claim: &ClaimRef, lines: &[LogLine]) -> Result<Beat, Error> {
        // Not repeated: the log would have the lines twice.
        let body = about(claim, json!({ "lines": lines }));
        self.standing(self.post(&["v1", "tasks", "logs"], &body, Repeat::Harmful).await?)
    }

    /// Settles a task whose call succeeded.
    pub async fn complete(&self, claim: &ClaimRef, output: &Value) -> Result<(), Error> {
        self.settle("complete", claim, json!({ "output": output })).await
    }

    /// Settles a task whose call failed.
    pub async fn fail(&self, claim: &ClaimRef, failure: &TaskFailure) -> Result<(), Error> {
        self.settle("fail", claim, json!({ "error": failure })).await
    }

    /// Gives a task back: it neither succeeded nor failed, and another worker may take it.
    pub async fn release(&self, claim: &ClaimRef) -> Result<(), Error> {
        self.settle("release", claim, json!({})).await
    }

    async fn say(&self, verb: &str, claim: &ClaimRef, more: Value) -> Result<Beat, Error> {
        let answer = self.post(&["v1", "tasks", verb], &about(claim, more), Repeat::Harmless).await?;
        self.standing(answer)
    }

    fn standing(&self, mut answer: Value) -> Result<Beat, Error> {
        serde_json::from_value(answer["standing"].take()).map_err(|error| self.strange(error.to_string()))
    }

    /// Settles a task. The server applies a settlement once, so the client may repeat it. If an earlier try was
    /// applied, the server answers `already_settled`, which is a success: no other worker has this claim.
    async fn settle(&self, verb: &str, claim: &ClaimRef, more: Value) -> Result<(), Error> {
        let settled: Result<Value, Error> =
            self.post(&["v1", "tasks", verb], &about(claim, more), Repeat::Harmless).await;
        match settled {
            Err(error) if error.code() == Some("already_settled") => Ok(()),
            other => other.map(drop),
        }
    }
}

fn about(claim: &ClaimRef, mut more: Value) -> Value {
    more["run_id"] = json!(claim.run);
    more["node"] = json!(claim.node);
    more["claim"] = json!(claim.claim);
    more
}
