//! Registered workflows.

use serde_json::Value;
use switchyard_api::{WorkflowRecord, WorkflowView};

use crate::request::list;
use crate::{Client, Error};

impl Client {
    /// Lists the newest version of every registered workflow, sorted by name.
    pub async fn workflows(&self) -> Result<Vec<WorkflowRecord>, Error> {
        let answer: Value = self.get(&["v1", "workflows"], &[]).await?;
        list(answer, "workflows").map_err(|error| self.strange(error.to_string()))
    }

    /// Gets a registered workflow with its definition; the newest version if `None`.
    pub async fn workflow(&self, name: &str, version: Option<u32>) -> Result<WorkflowView, Error> {
        let params: Vec<_> = version.map(|version| ("version", version.to_string())).into_iter().collect();
        self.get(&["v1", "workflows", name], &params).await
    }

    /// Registers a definition under its name: as a new version, unless it equals the newest.
    pub async fn register_workflow(&self, definition: &Value) -> Result<WorkflowRecord, Error> {
        self.change(&["v1", "workflows"], definition).await
    }
}
