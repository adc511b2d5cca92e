//! An unreliable worker over HTTP: it talks to whichever API answers, and forgets some of its tasks.
//!
//! Its leases are longer than any test, so that a forgotten task is retried after its attempt's time limit, or not at
//! all.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use reqwest::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The share of claimed tasks that are forgotten.
const FORGOTTEN: f64 = 0.3;
/// The pause between two claims while no API answers.
const AFTER_TROUBLE: Duration = Duration::from_millis(200);

pub(crate) struct Worker {
    pub(crate) random: StdRng,
    pub(crate) http: Client,
    pub(crate) addresses: Vec<String>,
}

impl Worker {
    pub(crate) async fn work_until(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let claim = json!({ "worker": "unreliable", "slots": 4, "types": ["function"], "wait": "1s", "lease": "1h" });
            let claimed = self.post("/v1/tasks/claim", &claim).await;
            let Some(tasks) = claimed.as_ref().and_then(|answer| answer["tasks"].as_array()) else {
                tokio::time::sleep(AFTER_TROUBLE).await;
                continue;
            };
            for task in tasks {
                self.call(task).await;
            }
        }
    }

    /// Works on a task. Each request may go to another API. An unanswered one is not repeated: the attempt's time
    /// limit covers it.
    async fn call(&mut self, task: &Value) {
        if self.random.random_bool(FORGOTTEN) {
            return;
        }
        let about = json!({ "run_id": task["run_id"], "node": task["node"], "claim": task["claim"] });
        self.post("/v1/tasks/heartbeat", &about).await;
        self.post("/v1/tasks/complete", &about).await;
    }

    async fn post(&mut self, path: &str, body: &Value) -> Option<Value> {
        let address = &self.addresses[self.random.random_range(0..self.addresses.len())];
        let answer = self.http.post(format!("{address}{path}")).json(body).send().await.ok()?;
        answer.json().await.ok()
    }
}
