//! Bulk jobs, and deleting runs.

use reqwest::Method;
use serde_json::{Map, Value, json};
use switchyard_api::{BulkPreview, BulkResultPage, BulkView, Tombstone};
use switchyard_core::RunId;
use switchyard_store::BulkAction;

use crate::request::list;
use crate::{Client, Error};

impl Client {
    /// Starts a job: does something to every run that the filter finds, in the text form of filters.
    pub async fn start_bulk(&self, action: &BulkAction, filter: &str, by: &str) -> Result<BulkView, Error> {
        self.change(&["v1", "bulk"], &body(action, filter, json!({ "by": by }))).await
    }

    /// How many runs such a job would work on, and a few of them. Nothing is changed.
    pub async fn preview_bulk(&self, action: &BulkAction, filter: &str) -> Result<BulkPreview, Error> {
        self.change(&["v1", "bulk"], &body(action, filter, json!({ "dry_run": true }))).await
    }

    /// Bulk jobs, newest first.
    pub async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkView>, Error> {
        let answer: Value = self.get(&["v1", "bulk"], &[("limit", limit.to_string())]).await?;
        list(answer, "jobs").map_err(|error| self.strange(error.to_string()))
    }

    /// A bulk job and how far it has come.
    pub async fn bulk_job(&self, id: &str) -> Result<BulkView, Error> {
        self.get(&["v1", "bulk", id], &[]).await
    }

    /// Stops a bulk job. What it has done stays done.
    pub async fn stop_bulk(&self, id: &str) -> Result<BulkView, Error> {
        self.change(&["v1", "bulk", id, "stop"], &json!({})).await
    }

    /// What a bulk job came to, run by run, after this one.
    pub async fn bulk_results(
        &self,
        id: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<BulkResultPage, Error> {
        let mut params = vec![("limit", limit.to_string())];
        params.extend(after.map(|run| ("after", run.to_string())));
        self.get(&["v1", "bulk", id, "results"], &params).await
    }

    /// Deletes a run that has ended, with the runs that it started.
    pub async fn delete_run(&self, run: RunId, by: &str, reason: &str) -> Result<Tombstone, Error> {
        let request = self.request(Method::DELETE, &["v1", "runs", &run.to_string()]);
        let request = request.json(&json!({ "by": by, "reason": reason }));
        self.read(&self.send_change(request).await?.1)
    }

    /// Runs that were deleted, the latest deletions first.
    pub async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, Error> {
        let answer: Value = self.get(&["v1", "tombstones"], &[("limit", limit.to_string())]).await?;
        list(answer, "tombstones").map_err(|error| self.strange(error.to_string()))
    }
}

/// The fields of the action stand beside its name.
fn body(action: &BulkAction, filter: &str, more: Value) -> Value {
    let mut body = match serde_json::to_value(action) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    body.remove("do");
    body.insert("action".into(), action.name().into());
    body.insert("filter".into(), filter.into());
    if let Value::Object(more) = more {
        body.extend(more);
    }
    Value::Object(body)
}
