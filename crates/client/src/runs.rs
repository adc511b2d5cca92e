//! Submits, lists and shows runs.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use switchyard_api::{Event, LogPage, RunAt, RunPage, RunView};
use switchyard_base::HumanDuration;
use switchyard_core::run::RunStatus;
use switchyard_core::{OperationId, RunId, Timestamp};

use crate::retry::Repeat;
use crate::{Client, Error};

/// A run to start.
#[derive(Clone, Debug)]
#[must_use = "nothing is submitted until it is given to `Client::submit`"]
pub struct Submission {
    body: Map<String, Value>,
}

impl Submission {
    /// Creates a run of a registered workflow.
    pub fn named(workflow: &str, input: Value) -> Self {
        Self::new(workflow.into(), input)
    }

    /// Creates a run of a definition, as JSON.
    pub fn definition(definition: Value, input: Value) -> Self {
        Self::new(definition, input)
    }

    fn new(workflow: Value, input: Value) -> Self {
        let mut body = Map::new();
        body.insert("workflow".into(), workflow);
        body.insert("input".into(), input);
        Self { body }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body.insert(name.into(), value.into());
        self
    }

    /// Sets the version of the registered workflow; the default is the newest.
    pub fn version(self, version: u32) -> Self {
        self.with("version", version)
    }

    /// Sets an idempotency key: submissions with the same key, workflow and input are the same run. Without a key,
    /// every submission is a new run.
    pub fn idempotency_key(self, key: &str) -> Self {
        self.with("idempotency_key", key)
    }

    /// Sets a concurrency key: at most `limit` runs with this key run at once; the others are queued.
    pub fn concurrency(self, key: &str, limit: NonZeroU32) -> Self {
        self.with("concurrency", json!({ "key": key, "limit": limit }))
    }

    /// Sets the start: no node starts before this time.
    pub fn start_at(self, at: Timestamp) -> Self {
        self.with("start_at", at.to_string())
    }

    /// Delays the start: the first nodes start this long after the run was accepted.
    pub fn delay(self, delay: Duration) -> Self {
        self.with("delay", HumanDuration(delay).to_string())
    }

    /// Sets the priority of nodes that have none of their own, 1 (last) to 10 (first).
    pub fn priority(self, priority: u8) -> Self {
        self.with("priority", priority)
    }

    /// Sets a deadline: the run fails if it has not ended this long after its start.
    pub fn deadline(self, after: Duration) -> Self {
        self.with("deadline", HumanDuration(after).to_string())
    }

    /// Adds a label, by which filters find the run; a run has at most 16 labels.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        let labels = self.body.entry("labels").or_insert_with(|| json!({}));
        labels[key] = value.into();
        self
    }

    /// Limits how many nodes of the run are queued or executed at once.
    pub fn parallelism(self, nodes: NonZeroU32) -> Self {
        self.with("parallelism", nodes.get())
    }
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct RunsQuery {
    /// Conditions in the text form of a filter: `status=failed,cancelled label=team=search created_after=24h`.
    pub filter: Option<String>,
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Only runs of this workflow.
    pub workflow: Option<String>,
    /// Also runs that other runs started.
    pub include_children: bool,
    /// The cursor of this page: `next` of the page before.
    pub cursor: Option<RunId>,
    /// The most runs to return, up to 200; 50 if `None`.
    pub limit: Option<usize>,
    /// Whether and how to count the runs on all pages.
    pub count: Option<Count>,
}

/// How runs are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Up to 1,000.
    Bounded,
    /// All of them, however long that takes.
    Exact,
}

impl Count {
    fn as_str(self) -> &'static str {
        match self {
            Self::Bounded => "true",
            Self::Exact => "exact",
        }
    }
}

/// A page of events of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The value of `after` for the next page, if there are more events now.
    pub next: Option<u64>,
    /// Whether the run has ended and this is its last page.
    pub ended: bool,
}

impl Client {
    /// Submits a run. When this returns, the run is durable and will end.
    pub async fn submit(&self, submission: &Submission) -> Result<RunAt, Error> {
        self.submit_once(submission).await.map(|(run, _)| run)
    }

    /// Submits a run, and returns whether the run existed before. That is also true if an earlier try of this call
    /// created the run and its response was lost.
    pub async fn submit_once(&self, submission: &Submission) -> Result<(RunAt, bool), Error> {
        let request = self.request(reqwest::Method::POST, &["v1", "runs"]).json(&submission.body);
        let (status, bytes) = match submission.body.get("idempotency_key").and_then(Value::as_str) {
            None => self.send_change(request).await?,
            Some(key) => match OperationId::new(key) {
                Ok(key) => self.send_as(request, key).await?,
                // This key cannot be sent as a header.
                Err(_) => self.send_for_answer(request, Repeat::Harmless).await?,
            },
        };
        Ok((self.read(&bytes)?, status == reqwest::StatusCode::OK))
    }

    /// Lists runs, newest first, a page at a time.
    pub async fn runs(&self, query: &RunsQuery) -> Result<RunPage, Error> {
        let mut params = vec![("include_children", query.include_children.to_string())];
        params.extend(query.filter.clone().filter(|text| !text.is_empty()).map(|text| ("filter", text)));
        params.extend(query.count.map(|count| ("count", count.as_str().to_owned())));
        params.extend(query.status.map(|status| ("status", status.to_string())));
        params.extend(query.workflow.clone().map(|name| ("workflow", name)));
        params.extend(query.cursor.map(|run| ("cursor", run.to_string())));
        params.extend(query.limit.map(|limit| ("limit", limit.to_string())));
        self.get(&["v1", "runs"], &params).await
    }

    /// Gets the current state of a run.
    pub async fn run(&self, run: RunId) -> Result<RunView, Error> {
        self.get(&["v1", "runs", &run.to_string()], &[]).await
    }

    /// Gets the state of a run right after one of its events.
    pub async fn run_at(&self, run: RunId, seq: u64) -> Result<RunView, Error> {
        self.get(&["v1", "runs", &run.to_string()], &[("at", seq.to_string())]).await
    }

    /// Gets a page of the log lines that the run's steps have written so far, in events after `after`.
    pub async fn logs(
        &self,
        run: RunId,
        after: u64,
        node: Option<&str>,
        attempt: Option<u32>,
    ) -> Result<LogPage, Error> {
        let mut params = vec![("after", after.to_string())];
        params.extend(node.map(|node| ("node", node.to_owned())));
        params.extend(attempt.map(|attempt| ("attempt", attempt.to_string())));
        let run = run.to_string();
        let request = self.request_with(reqwest::Method::GET, &["v1", "runs", &run, "logs"], &params);
        self.send(request.header("accept", "application/json"), Repeat::Harmless).await
    }

    /// Gets the existing events after `after`: at most `limit`, which may be up to 1,000.
    pub async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<EventPage, Error> {
        let run = run.to_string();
        let request = self
            .request_with(
                reqwest::Method::GET,
                &["v1", "runs", &run, "events"],
                &[("after", after.to_string()), ("limit", limit.to_string())],
            )
            .header("accept", "application/json");
        self.send(request, Repeat::Harmless).await
    }
}
