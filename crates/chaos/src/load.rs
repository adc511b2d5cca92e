//! What users do meanwhile: submit, decide, patch, cancel, through whichever API answers.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use switchyard_core::RunId;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::graphs;
use crate::worker::Worker;

/// How long one request may take. A request without an answer was promised nothing.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_millis(120);

/// What was accepted, and what else was answered with success.
#[derive(Debug, Default)]
pub(crate) struct Submitted {
    pub(crate) runs: Vec<RunId>,
    /// Patches that were answered with success, by run.
    pub(crate) patches: HashMap<RunId, Vec<String>>,
    pub(crate) cancelled: Vec<RunId>,
    pub(crate) decisions: usize,
    pub(crate) refused: usize,
}

pub(crate) struct Load {
    enough: CancellationToken,
    stop: CancellationToken,
    user: JoinHandle<Submitted>,
    worker: JoinHandle<()>,
}

struct User {
    random: StdRng,
    http: Client,
    addresses: Vec<String>,
    effects: String,
    submitted: Submitted,
}

impl Load {
    pub(crate) fn start(mut random: StdRng, addresses: Vec<String>, effects: String) -> Self {
        let (enough, stop) = (CancellationToken::new(), CancellationToken::new());
        let http = Client::builder().timeout(REQUEST_TIME_MAX).build().unwrap_or_default();
        let worker = Worker {
            random: StdRng::from_rng(&mut random),
            http: http.clone(),
            addresses: addresses.clone(),
        };
        let worker = tokio::spawn(worker.work_until(stop.clone()));
        let user = User { random, http, addresses, effects, submitted: Submitted::default() };
        Self { user: tokio::spawn(user.act_until(enough.clone(), stop.clone())), worker, enough, stop }
    }

    /// From now on the user only answers what is asked.
    pub(crate) fn submit_no_more(&self) {
        self.enough.cancel();
    }

    pub(crate) async fn stop(self) -> anyhow::Result<Submitted> {
        self.stop.cancel();
        self.worker.await?;
        Ok(self.user.await?)
    }
}

impl User {
    async fn act_until(mut self, enough: CancellationToken, stop: CancellationToken) -> Submitted {
        while !stop.is_cancelled() {
            let done = if enough.is_cancelled() { self.decide().await } else { self.act().await };
            if done.is_none() {
                self.submitted.refused += 1;
            }
            tokio::time::sleep(self.random.random_range(Duration::ZERO..PAUSE_MAX)).await;
        }
        self.submitted
    }

    /// None: refused, or not answered.
    async fn act(&mut self) -> Option<()> {
        match self.random.random_range(0..10) {
            0 => self.patch().await,
            1 => self.cancel().await,
            2 | 3 => self.decide().await,
            _ => self.submit().await,
        }
    }

    async fn submit(&mut self) -> Option<()> {
        let workflow = graphs::workflow(&mut self.random, &self.effects);
        let mut body = json!({ "workflow": workflow, "input": {} });
        if self.random.random_bool(0.2) {
            body["concurrency"] = json!({ "key": "tenant", "limit": 4 });
        }
        let answer = self.post("/v1/runs", &body).await?;
        let document: Value = answer.json().await.ok()?;
        let run: RunId = document["run_id"].as_str()?.parse().ok()?;
        self.submitted.runs.push(run);
        Some(())
    }

    /// A run of late, which is likely to be under way.
    fn recent(&mut self) -> Option<RunId> {
        let runs = &self.submitted.runs;
        let back = self.random.random_range(1..=8).min(runs.len());
        (back > 0).then(|| runs[runs.len() - back])
    }

    async fn patch(&mut self) -> Option<()> {
        let run = self.recent()?;
        let (node, spec) = graphs::addition(&mut self.random, &self.effects);
        let ops = json!([{ "op": "add_node", "id": node, "node": spec }]);
        self.post(&format!("/v1/runs/{run}/patches"), &json!({ "ops": ops, "by": "chaos" })).await?;
        self.submitted.patches.entry(run).or_default().push(node);
        Some(())
    }

    async fn cancel(&mut self) -> Option<()> {
        let run = self.recent()?;
        self.post(&format!("/v1/runs/{run}/cancel"), &json!({ "by": "chaos" })).await?;
        self.submitted.cancelled.push(run);
        Some(())
    }

    async fn decide(&mut self) -> Option<()> {
        let url = format!("{}/v1/approvals", self.address());
        let list: Value = self.http.get(url).send().await.ok()?.json().await.ok()?;
        let Some(approval) = list["approvals"].get(0).and_then(|one| one["approval"].as_str()) else {
            return Some(());
        };
        let how = if self.random.random_bool(0.8) { "approve" } else { "reject" };
        self.post(&format!("/v1/approvals/{approval}/{how}"), &json!({ "by": "chaos" })).await?;
        self.submitted.decisions += 1;
        Some(())
    }

    fn address(&mut self) -> String {
        self.addresses[self.random.random_range(0..self.addresses.len())].clone()
    }

    async fn post(&mut self, path: &str, body: &Value) -> Option<Response> {
        let url = format!("{}{path}", self.address());
        let answer = self.http.post(url).json(body).send().await.ok()?;
        answer.status().is_success().then_some(answer)
    }
}
