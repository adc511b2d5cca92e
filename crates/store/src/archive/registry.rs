//! Registered workflows: names for definitions, in versions.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::{Hash, Timestamp, time};

use crate::{Mutation, Operations, StoreError};

/// Workflows by name and version.
#[async_trait]
pub trait Registry: Operations {
    /// [`Mutation::RegisterWorkflow`] without an operation.
    async fn register_workflow(
        &self,
        name: &str,
        definition: Hash,
        at: Timestamp,
    ) -> Result<WorkflowRecord, StoreError> {
        self.mutate(Mutation::RegisterWorkflow { name: name.to_owned(), definition, at }, None)
            .await?
            .workflow()
    }

    /// A version of a workflow, or the newest version if `None`.
    async fn workflow(&self, name: &str, version: Option<u32>) -> Result<Option<WorkflowRecord>, StoreError>;

    /// The newest version of every workflow, by name.
    async fn workflows(&self) -> Result<Vec<WorkflowRecord>, StoreError>;
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    pub name: String,
    pub version: u32,
    pub definition: Hash,
    #[serde(with = "time::rfc3339")]
    pub created_at: Timestamp,
}
