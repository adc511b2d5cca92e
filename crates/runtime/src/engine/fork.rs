//! Forks a run: a new run that keeps earlier results of an old one, with an edited input or graph.

use std::sync::Arc;

use serde_json::Value;
use switchyard_base::PatchOp;
use switchyard_core::in_flight::{Acceptance, NewRun};
use switchyard_core::run::{Accepted, ForkOrigin};
use switchyard_core::{OperationId, RunId};
use switchyard_lang::{Program, patch};

use super::body::Body;
use super::operation::operation;
use super::submit::Naming;
use super::{Engine, EngineError};
use crate::evaluate::prepare_input;
use crate::{Principal, ids};

/// A request to fork a run: the node to start at and the changes.
#[derive(Clone, Debug)]
pub struct Fork {
    pub run: RunId,
    /// A repetition with the same id returns the run of the first request.
    pub operation: OperationId,
    /// This node and its dependents are executed again.
    pub from: Arc<str>,
    pub input: Option<Value>,
    pub edits: Vec<PatchOp>,
}

#[derive(Clone, Debug)]
pub struct Forked {
    pub run: RunId,
    /// Nodes whose results the new run keeps.
    pub kept: Vec<Arc<str>>,
    pub diff: Vec<String>,
}

impl Engine {
    /// Forks a run. The operation id is the idempotency key of the new run.
    pub async fn fork(&self, by: &Principal, fork: Fork) -> Result<Forked, EngineError> {
        let asked = operation(&fork.operation, &("fork", fork.run, &fork.from, &fork.input, &fork.edits));
        let id = ids::run_id(self.clock.now(), 0);
        let naming = Naming::by_key(id, fork.operation.as_str(), Body::of_fork(asked.command));
        if let Some(known) = self.known(&naming).await? {
            return self.forked_before(known.run(), fork.run).await;
        }
        tracing::debug!(%by, run = %fork.run, from = %fork.from, "a run is forked");
        let origin = self.state(fork.run).await?;
        let seeds = origin.seeds_before(&fork.from)?;
        let before = self.catalog.get(origin.ir.hash).await?;
        let program = self.edited(&before, &fork.edits)?;
        let input = match fork.input {
            Some(input) => {
                let input = prepare_input(&program, input).await.map_err(EngineError::Invalid)?;
                self.payloads.keep(&input).await?
            }
            None => origin.accepted.input.clone(),
        };
        self.catalog.add(program.clone()).await?;
        let kept: Vec<Arc<str>> = seeds.iter().map(|seed| seed.node.clone()).collect();
        let accepted = Accepted {
            trace: self.observe.link(id, None),
            workflow_version: origin.accepted.workflow_version,
            parallelism: origin.accepted.parallelism,
            priority: origin.accepted.priority,
            concurrency: origin.accepted.concurrency.clone(),
            scheduled_at: origin.accepted.scheduled_at,
            forked_from: Some(ForkOrigin { run: fork.run, node: fork.from }),
            idempotency: naming.key.clone(),
            labels: origin.accepted.labels.clone(),
            seeds,
            ..Accepted::plain(program.ir.name.clone(), program.hash, input)
        };
        let new = NewRun { id, accepted };
        match self.until_known(&fork.operation, || self.take_in(&naming, &new)).await? {
            Acceptance::New(run) => {
                let diff = patch::diff(&before.definition, &program.definition);
                Ok(Forked { run, kept, diff })
            }
            Acceptance::Existing(run) => self.forked_before(run, fork.run).await,
        }
    }

    /// The result of an earlier fork with the same operation id.
    async fn forked_before(&self, run: RunId, origin: RunId) -> Result<Forked, EngineError> {
        let forked = self.history().state(run, Some(1)).await?;
        let before = self.catalog.get(self.state(origin).await?.ir.hash).await?;
        let program = self.catalog.get(forked.ir.hash).await?;
        let kept = forked.accepted.seeds.iter().map(|seed| seed.node.clone()).collect();
        Ok(Forked { run, kept, diff: patch::diff(&before.definition, &program.definition) })
    }

    /// The program with some operations applied to its definition; the same program without any.
    pub(super) fn edited(&self, before: &Arc<Program>, ops: &[PatchOp]) -> Result<Arc<Program>, EngineError> {
        if ops.is_empty() {
            return Ok(before.clone());
        }
        let definition = patch::apply(&before.definition, ops).map_err(EngineError::Invalid)?;
        Program::compile(definition).map(Arc::new).map_err(EngineError::Invalid)
    }
}
