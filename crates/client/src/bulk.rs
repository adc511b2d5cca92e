//! Bulk jobs and the deletion of runs.

use reqwest::Method;
use serde_json::{Map, Value, json};
use switchyard_api::{BulkPreview, BulkResultPage, BulkView, Tombstone};
use switchyard_core::RunId;
use switchyard_store::BulkAction;

use crate::request::list;
use crate::{Client, Error};

impl Client {
    /// Starts a job that applies an action to every run that matches the filter, which is given in its text form.
    pub async fn start_bulk(&self, action: &BulkAction, filter: &str, by: &str) -> Result<BulkView, Error> {
        self.change(&["v1", "bulk"], &body(action, filter, json!({ "by": by }))).await
    }

    /// Counts the runs that such a job would work on, and shows a few of them. Changes nothing.
    pub async fn preview_bulk(&self, action: &BulkAction, filter: &str) -> Result<BulkPreview, Error> {
        self.change(&["v1", "bulk"], &body(action, filter, json!({ "dry_run": true }))).await
    }

    /// Lists bulk jobs, newest first.
    pub async fn bulk_jobs(&self, limit: usize) -> Result<Vec<BulkView>, Error> {
        let answer: Value = self.get(&["v1", "bulk"], &[("limit", limit.to_string())]).await?;
        list(answer, "jobs").map_err(|error| self.strange(error.to_string()))
    }

    /// Gets a bulk job and its progress.
    pub async fn bulk_job(&self, id: &str) -> Result<BulkView, Error> {
        self.get(&["v1", "bulk", id], &[]).await
    }

    /// Stops a bulk job. Changes that it has made are not undone.
    pub async fn stop_bulk(&self, id: &str) -> Result<BulkView, Error> {
        self.change(&["v1", "bulk", id, "stop"], &json!({})).await
    }

    /// Lists the results of a bulk job, one for each run, after the run `after`.
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

    /// Deletes an ended run, with the runs that it started.
    pub async fn delete_run(&self, run: RunId, by: &str, reason: &str) -> Result<Tombstone, Error> {
        let request = self.request(Method::DELETE, &["v1", "runs", &run.to_string()]);
        let request = request.json(&json!({ "by": by, "reason": reason }));
        self.read(&self.send_change(request).await?.1)
    }

    /// Lists tombstones of deleted runs, the latest deletions first.
    pub async fn tombstones(&self, limit: usize) -> Result<Vec<Tombstone>, Error> {
        let answer: Value = self.get(&["v1", "tombstones"], &[("limit", limit.to_string())]).await?;
        list(answer, "tombstones").map_err(|error| self.strange(error.to_string()))
    }
}

/// The request body: the action's name and fields, the filter, and `more`, all at one level.
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
