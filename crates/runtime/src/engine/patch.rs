//! Patches: changes to the graph of a run in flight, and their undo.

use std::sync::Arc;

use switchyard_api::PatchReport;
use switchyard_base::PatchOp;
use switchyard_core::in_flight::Command;
use switchyard_core::run::{Operation, Patched, Run};
use switchyard_core::{OperationId, PatchId, Payload, RunId};
use switchyard_lang::{Program, patch};

use super::operation::operation;
use super::{Engine, EngineError};
use crate::{Principal, ids};

#[derive(Clone, Debug)]
pub struct PatchRequest {
    pub run: RunId,
    pub ops: Vec<PatchOp>,
    /// The version of the graph that the author saw; the newest if `None`.
    pub seen: Option<u32>,
    pub operation: OperationId,
    pub reason: Arc<str>,
    /// Reports the effects without applying the patch.
    pub dry_run: bool,
}

/// A checked change, ready to be applied to a run.
struct Change {
    program: Arc<Program>,
    ops: Payload,
    diff: Vec<Arc<str>>,
    undoes: Option<PatchId>,
    operation: Operation,
}

impl Engine {
    pub async fn patch(&self, by: &Principal, request: PatchRequest) -> Result<PatchReport, EngineError> {
        if request.ops.is_empty() {
            return Err(EngineError::BadRequest("a patch needs at least one operation".into()));
        }
        let ops = serde_json::to_value(&request.ops)
            .map_err(|error| EngineError::BadRequest(format!("the operations: {error}")))?;
        let asked = ("patch", &ops, request.seen, by.name(), &request.reason);
        let operation = operation(&request.operation, &asked);
        let run = self.live(request.run).await?;
        if !request.dry_run
            && let Some(report) = self.repeated(&run, &operation).await?
        {
            return Ok(report);
        }
        let before = self.catalog.get(run.ir.hash).await?;
        let program = self.edited(&before, &request.ops)?;
        let change = Change {
            diff: lines(&before, &program),
            ops: self.payloads.keep(&ops).await?,
            program,
            undoes: None,
            operation,
        };
        self.put_on(by, &run, change, &request).await
    }

    /// Undoes a patch, as long as no node that it changed has started. Later patches stay.
    pub async fn undo_patch(
        &self,
        by: &Principal,
        run: RunId,
        undo: &PatchId,
        id: OperationId,
        dry_run: bool,
    ) -> Result<PatchReport, EngineError> {
        let run = self.live(run).await?;
        let asked = operation(&id, &("undo_patch", undo, by.name()));
        if !dry_run && let Some(report) = self.repeated(&run, &asked).await? {
            return Ok(report);
        }
        run.patch_to_undo(undo)?;
        let before = self.catalog.get(run.ir.hash).await?;
        let program = self.without(&run, undo).await?;
        let change = Change {
            diff: lines(&before, &program),
            ops: Payload::null(),
            program,
            undoes: Some(undo.clone()),
            operation: asked,
        };
        let reason = format!("undo {undo}").into();
        let request =
            PatchRequest { run: run.id, ops: Vec::new(), seen: None, operation: id, reason, dry_run };
        self.put_on(by, &run, change, &request).await
    }

    /// The result of an earlier patch with the same operation id.
    async fn repeated(&self, run: &Run, operation: &Operation) -> Result<Option<PatchReport>, EngineError> {
        let made_by = |patched: &&Patched| patched.operation.as_ref().is_some_and(|by| by.id == operation.id);
        let Some(patched) = run.patches.iter().find(made_by) else { return Ok(None) };
        // The patch may still be in the outbox. Another command with this id is refused.
        let command = Command::Patch { seen: patched.version - 1, patched: Box::new(patched.clone()) };
        self.command(run.id, operation.clone(), command, "patched").await?;
        Ok(Some(PatchReport {
            patch: Some(patched.patch.clone()),
            version: patched.version,
            diff: patched.diff.clone(),
        }))
    }

    async fn live(&self, run: RunId) -> Result<Run, EngineError> {
        match self.hot.snapshot(run).await? {
            Some(run) => Ok(run),
            // Ended runs are refused later, with their status in the answer.
            None => self.history().state(run, None).await,
        }
    }

    async fn put_on(
        &self,
        by: &Principal,
        run: &Run,
        change: Change,
        request: &PatchRequest,
    ) -> Result<PatchReport, EngineError> {
        let seen = request.seen.unwrap_or(run.version);
        run.check_patch(seen, &change.program.ir)?;
        let report = PatchReport { patch: None, version: run.version + 1, diff: change.diff.clone() };
        if request.dry_run {
            return Ok(report);
        }
        self.catalog.add(change.program.clone()).await?;
        let patch = ids::patch_id();
        let patched = Patched {
            patch: patch.clone(),
            version: report.version,
            definition: change.program.hash,
            author: by.name().clone(),
            reason: request.reason.clone(),
            ops: change.ops,
            diff: change.diff,
            undoes: change.undoes,
            operation: None,
        };
        let command = Command::Patch { seen, patched: Box::new(patched) };
        self.command(run.id, change.operation, command, "patched").await?;
        Ok(PatchReport { patch: Some(patch), ..report })
    }

    /// The run's graph as it would be if one patch had never been made.
    async fn without(&self, run: &Run, undo: &PatchId) -> Result<Arc<Program>, EngineError> {
        let undone: Vec<&PatchId> = run.patches.iter().filter_map(|patch| patch.undoes.as_ref()).collect();
        let mut program = self.catalog.get(run.accepted.definition).await?;
        for patch in &run.patches {
            let void = patch.undoes.is_some() || patch.patch == *undo || undone.contains(&&patch.patch);
            if !void {
                let ops = self.payloads.load(&patch.ops).await?;
                let ops: Vec<PatchOp> = serde_json::from_value(ops)
                    .map_err(|error| EngineError::BadRequest(format!("patch {}: {error}", patch.patch)))?;
                program = self.edited(&program, &ops)?;
            }
        }
        Ok(program)
    }
}

fn lines(before: &Program, after: &Program) -> Vec<Arc<str>> {
    patch::diff(&before.definition, &after.definition).into_iter().map(Into::into).collect()
}
