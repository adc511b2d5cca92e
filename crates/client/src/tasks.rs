//! Working for a server: claim, keep, settle.

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

/// What a worker can take.
#[derive(Clone, Debug)]
pub struct ClaimTasks {
    /// Its name, for the histories of runs.
    pub worker: String,
    /// The functions that it serves; one that ends in `*` stands for all that begin so.
    pub functions: Vec<String>,
    /// Besides: `function.<queue>` for every task of nodes with that `queue`, or `function` for every function without
    /// one.
    pub types: Vec<String>,
    /// At most this many tasks, up to 100.
    pub slots: usize,
    /// How long to wait for work, up to a minute.
    pub wait: Duration,
    /// How long a task is this worker's without a heartbeat: a second to an hour.
    pub lease: Duration,
    /// How many tasks it holds now, for the list of workers.
    pub busy: usize,
    /// Of its program, for the list of workers.
    pub version: String,
}

/// Why a call failed. The node's retry policy decides whether this was the last attempt.
#[derive(Clone, Debug, Serialize)]
pub struct TaskFailure {
    /// A stable word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Whether trying the same thing again can help.
    pub retryable: bool,
}

impl Client {
    /// Waits for work and takes it; no task if there was none for so long. Not repeated: a claim whose answer is
    /// lost is taken back when its lease runs out.
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

    /// Says that the work goes on, for another lease; hears whether it should.
    pub async fn heartbeat(&self, claim: &ClaimRef, lease: Duration) -> Result<Beat, Error> {
        let more = json!({ "lease": HumanDuration(lease).to_string() });
        self.say("heartbeat", claim, more).await
    }

    /// Stores progress for the next worker that gets the node.
    pub async fn checkpoint(&self, claim: &ClaimRef, value: &Value) -> Result<Beat, Error> {
        self.say("checkpoint", claim, json!({ "value": value })).await
    }

    /// Shows output as it comes: up to 256 chunks of at most 4,096 bytes.
    pub async fn chunks(&self, claim: &ClaimRef, chunks: &[Value]) -> Result<Beat, Error> {
        // Sent twice, they would be seen twice.
        let body = about(claim, json!({ "chunks": chunks }));
        self.standing(self.post(&["v1", "tasks", "chunks"], &body, Repeat::Harmful).await?)
    }

    /// Keeps lines that the work logs: 1 to 1,000 of them.
    pub async fn log(&self, claim: &ClaimRef, lines: &[LogLine]) -> Result<Beat, Error> {
        // Sent twice, they would be there twice.
        let body = about(claim, json!({ "lines": lines }));
        self.standing(self.post(&["v1", "tasks", "logs"], &body, Repeat::Harmful).await?)
    }

    /// The call succeeded.
    pub async fn complete(&self, claim: &ClaimRef, output: &Value) -> Result<(), Error> {
        self.settle("complete", claim, json!({ "output": output })).await
    }

    /// The call failed.
    pub async fn fail(&self, claim: &ClaimRef, failure: &TaskFailure) -> Result<(), Error> {
        self.settle("fail", claim, json!({ "error": failure })).await
    }

    /// Not done, not failed: another worker may take it.
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

    /// A settlement counts once, so it may be repeated. Where an earlier try has counted after all, the server
    /// says so, which is as good: no other worker has this claim.
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
