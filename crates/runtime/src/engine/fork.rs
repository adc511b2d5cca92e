//! A new run from a step of an old one: earlier results kept, input or graph edited.

use std::sync::Arc;

use serde_json::Value;
use switchyard_core::run::{Accepted, ForkOrigin};
use switchyard_core::yard::NewRun;
use switchyard_core::{OperationId, RunId};
use switchyard_lang::{PatchOp, Program, patch};

use super::{Engine, EngineError};
use crate::evaluate::prepare_input;
use crate::ids;

/// Where to fork from, and what to change.
#[derive(Clone, Debug)]
pub struct Fork {
    pub run: RunId,
    /// Asked for again with the same id, the run that was made the first time is answered.
    pub operation: OperationId,
    /// This node and everything after it is done again.
    pub from: Arc<str>,
    pub input: Option<Value>,
    pub edits: Vec<PatchOp>,
}

#[derive(Clone, Debug)]
pub struct Forked {
    pub run: RunId,
    /// Nodes whose results were taken over.
    pub kept: Vec<Arc<str>>,
    pub diff: Vec<String>,
}

impl Engine {
    pub async fn fork(&self, fork: Fork) -> Result<Forked, EngineError> {
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
        let id = ids::run_id(self.clock.now(), 0);
        let accepted = Accepted {
            trace: self.observe.link(id, None),
            workflow_version: origin.accepted.workflow_version,
            parallelism: origin.accepted.parallelism,
            concurrency: origin.accepted.concurrency.clone(),
            forked_from: Some(ForkOrigin { run: fork.run, node: fork.from }),
            seeds,
            ..Accepted::plain(program.ir.name.clone(), program.hash, input)
        };
        let run = self.hot.accept(NewRun { id, accepted }).await?.run();
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
