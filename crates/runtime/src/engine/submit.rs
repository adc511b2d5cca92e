//! Taking runs in.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchyard_core::run::{Accepted, Concurrency, Idempotency, Refusal};
use switchyard_core::yard::{Acceptance, NewRun};
use switchyard_core::{Hash, Payload, TraceLink};
use switchyard_lang::{Program, Scope};

use super::{Engine, EngineError};
use crate::evaluate::{prepare_input, render_text};
use crate::ids;

/// A run that somebody wants.
#[derive(Clone, Debug)]
pub struct Submission {
    pub program: Arc<Program>,
    pub input: Value,
    /// If the program was found by its registered name.
    pub workflow_version: Option<u32>,
    pub idempotency_key: Option<String>,
    /// Instead of the key that the workflow itself gives.
    pub concurrency: Option<Concurrency>,
    /// Counted from acceptance; instead of the workflow's own.
    pub deadline: Option<Duration>,
    pub parallelism: Option<u32>,
    /// The trace that it is asked for in.
    pub trace: Option<TraceLink>,
}

impl Submission {
    pub fn new(program: Arc<Program>, input: Value) -> Self {
        Self {
            program,
            input,
            workflow_version: None,
            idempotency_key: None,
            concurrency: None,
            deadline: None,
            parallelism: None,
            trace: None,
        }
    }
}

impl Engine {
    /// Accepts a run: when this returns, it will end, whatever is killed on the way.
    pub async fn submit(&self, submission: Submission) -> Result<Acceptance, EngineError> {
        let program = &submission.program;
        let input = prepare_input(program, submission.input.clone()).await.map_err(EngineError::Invalid)?;
        let payload = self.payloads.keep(&input).await?;
        let idempotency = idempotency(&submission, &payload);
        if let Some(known) = self.known(idempotency.as_ref()).await? {
            return Ok(known);
        }
        self.catalog.add(program.clone()).await?;
        let concurrency = concurrency(&submission, &input).await?;
        let now = self.clock.now();
        let id = ids::run_id(now, 0);
        let accepted = Accepted {
            workflow_version: submission.workflow_version,
            concurrency,
            deadline: submission.deadline.map(|after| now.plus(after)),
            parallelism: submission.parallelism,
            idempotency,
            trace: self.observe.link(id, submission.trace.clone()),
            ..Accepted::plain(program.ir.name.clone(), program.hash, payload)
        };
        Ok(self.hot.accept(NewRun { id, accepted }).await?)
    }

    /// The run that this key was used for, if it was, and if for the same thing.
    async fn known(&self, wanted: Option<&Idempotency>) -> Result<Option<Acceptance>, EngineError> {
        let Some(wanted) = wanted else { return Ok(None) };
        match self.archive.by_idempotency_key(&wanted.key).await? {
            None => Ok(None),
            Some((run, body)) if body == wanted.body => Ok(Some(Acceptance::Existing(run))),
            Some((run, _)) => Err(Refusal::KeyReused { key: wanted.key.clone(), run }.into()),
        }
    }
}

fn idempotency(submission: &Submission, input: &Payload) -> Option<Idempotency> {
    let key = submission.idempotency_key.as_deref()?;
    let body = Hash::of(format!("{}\n{input:?}", submission.program.hash).as_bytes());
    Some(Idempotency { key: key.into(), body })
}

async fn concurrency(submission: &Submission, input: &Value) -> Result<Option<Concurrency>, EngineError> {
    if let Some(given) = &submission.concurrency {
        return Ok(Some(given.clone()));
    }
    let Some((key, limit)) = submission.program.concurrency() else { return Ok(None) };
    let key = render_text(key, &Scope::new(input.clone())).await.map_err(EngineError::ConcurrencyKey)?;
    Ok(Some(Concurrency { key: key.into(), limit: limit.get() }))
}
