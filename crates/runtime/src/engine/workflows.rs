//! Registered workflows.

use std::sync::Arc;

use switchyard_core::{Hash, OperationId};
use switchyard_lang::Program;
use switchyard_store::{Mutation, StoreError, WorkflowRecord};

use super::{Engine, EngineError, History};
use crate::Principal;

impl History {
    /// The newest version of every workflow, by name.
    pub async fn workflows(&self) -> Result<Vec<WorkflowRecord>, EngineError> {
        Ok(self.archive.workflows().await?)
    }

    /// A version of a workflow, or the newest version if `None`.
    pub async fn workflow(&self, name: &str, version: Option<u32>) -> Result<WorkflowRecord, EngineError> {
        let record = self.archive.workflow(name, version).await?;
        record.ok_or_else(|| unknown(name, version).into())
    }

    /// The newest versions of a workflow, newest first, at most `limit`.
    pub async fn workflow_versions(
        &self,
        name: &str,
        limit: usize,
    ) -> Result<Vec<WorkflowRecord>, EngineError> {
        let newest = self.workflow(name, None).await?.version;
        let mut versions = Vec::new();
        for version in (1..=newest).rev().take(limit) {
            versions.extend(self.archive.workflow(name, Some(version)).await?);
        }
        Ok(versions)
    }

    /// The canonical text of a definition.
    pub async fn definition(&self, hash: Hash) -> Result<Arc<str>, EngineError> {
        let text = self.archive.definition(hash).await?;
        Ok(text.ok_or_else(|| StoreError::unknown("definition", hash))?)
    }
}

impl Engine {
    /// Registers a program under its name: as a new version, unless the newest is the same already.
    pub async fn register_workflow(
        &self,
        by: &Principal,
        operation: &OperationId,
        program: &Arc<Program>,
    ) -> Result<WorkflowRecord, EngineError> {
        let request = self.asks(by, operation, "register_workflow", &(&program.ir.name, program.hash))?;
        let outcome = self.mutate(&request, || async move {
            self.catalog.add(program.clone()).await?;
            let name = program.ir.name.to_string();
            Ok(Mutation::RegisterWorkflow { name, definition: program.hash, at: self.clock.now() })
        });
        Ok(outcome.await?.workflow()?)
    }

    /// The program of a registered workflow, ready to be submitted, and its version.
    pub async fn registered_program(
        &self,
        name: &str,
        version: Option<u32>,
    ) -> Result<(Arc<Program>, u32), EngineError> {
        let record = self.history.workflow(name, version).await?;
        Ok((self.catalog.get(record.definition).await?, record.version))
    }
}

fn unknown(name: &str, version: Option<u32>) -> StoreError {
    match version {
        Some(version) => StoreError::unknown("workflow", format!("{name} version {version}")),
        None => StoreError::unknown("workflow", name),
    }
}
