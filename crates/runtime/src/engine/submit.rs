//! Submission of runs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchyard_base::DURATION_MAX;
use switchyard_core::in_flight::{Acceptance, NewRun};
use switchyard_core::labels::check_labels;
use switchyard_core::run::{Accepted, Concurrency, EventKind, Idempotency, Refusal};
use switchyard_core::{Labels, OperationId, Payload, RunId, Timestamp, TraceLink};
use switchyard_lang::{Program, Scope};
use switchyard_store::StoreError;

use super::body::Body;
use super::{Engine, EngineError};
use crate::evaluate::{prepare_input, render_labels, render_text};
use crate::{Principal, ids};

#[cfg(test)]
mod tests;

/// The start time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    At(Timestamp),
    /// This long after acceptance.
    After(Duration),
}

impl Start {
    /// The start time as a timestamp. A time further ahead than the longest duration is refused.
    fn moment(self, now: Timestamp) -> Result<Timestamp, EngineError> {
        match self {
            Self::At(at) if at.since(now) > DURATION_MAX => Err(EngineError::BadRequest(format!(
                "a run may start at most ten years from now, and {at} is later"
            ))),
            Self::At(at) => Ok(at),
            Self::After(delay) => Ok(now.plus(delay)),
        }
    }
}

/// A run to start.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The id of the run, if the caller must know it before the run is accepted.
    pub run: Option<RunId>,
    pub program: Arc<Program>,
    pub input: Value,
    /// The version of the registered workflow, if the program was found by name.
    pub workflow_version: Option<u32>,
    pub idempotency_key: Option<String>,
    /// Replaces the concurrency key of the workflow.
    pub concurrency: Option<Concurrency>,
    /// When the first nodes may start; at once if `None`.
    pub start: Option<Start>,
    /// The priority of nodes without one of their own, 1 (last) to 10 (first).
    pub priority: Option<u8>,
    /// The deadline, counted from the start; replaces the workflow's own.
    pub deadline: Option<Duration>,
    pub parallelism: Option<u32>,
    /// Labels in addition to those of the workflow; for equal keys, these win.
    pub labels: Labels,
    /// The schedule that starts the run.
    pub schedule: Option<Arc<str>>,
    /// The trace that the request belongs to.
    pub trace: Option<TraceLink>,
    /// The tick for which the schedule starts the run.
    pub scheduled_at: Option<Timestamp>,
}

impl Submission {
    pub fn new(program: Arc<Program>, input: Value) -> Self {
        Self {
            run: None,
            program,
            input,
            workflow_version: None,
            idempotency_key: None,
            concurrency: None,
            start: None,
            priority: None,
            deadline: None,
            parallelism: None,
            labels: Labels::new(),
            schedule: None,
            trace: None,
            scheduled_at: None,
        }
    }
}

/// The run id of a submission, and the data that makes repeating it safe.
pub(super) struct Naming {
    run: RunId,
    /// The caller's key, stored with the run.
    pub(super) key: Option<Idempotency>,
    body: Body,
    /// Whether the key is the run's own id, which the server gave to an earlier submission.
    repeated: bool,
}

impl Naming {
    /// The naming of a run with an idempotency key.
    pub(super) fn by_key(run: RunId, key: &str, body: Body) -> Self {
        let key = Idempotency { key: key.into(), body: body.hash };
        Self { run, key: Some(key), body, repeated: false }
    }
}

impl Engine {
    /// Accepts a run: when this returns, the run is durable and will end.
    ///
    /// While it is unknown whether an earlier try was accepted, the same run is submitted again, so it exists once.
    pub async fn submit(&self, by: &Principal, submission: Submission) -> Result<Acceptance, EngineError> {
        let program = &submission.program;
        let now = self.clock.now();
        let start_at = submission.start.map(|start| start.moment(now)).transpose()?;
        check_priority(submission.priority)?;
        let input = prepare_input(program, submission.input.clone()).await.map_err(EngineError::Invalid)?;
        let payload = self.payloads.keep(&input).await?;
        let naming = self.naming(&submission, &payload, now);
        if let Some(known) = self.known(&naming).await? {
            return Ok(known);
        }
        tracing::debug!(%by, run = %naming.run, workflow = %program.ir.name, "a run is submitted");
        self.catalog.add(program.clone()).await?;
        let concurrency = concurrency(&submission, &input).await?;
        let labels = labels(&submission, &input).await?;
        let accepted = Accepted {
            workflow_version: submission.workflow_version,
            concurrency,
            start_at,
            priority: submission.priority,
            deadline: submission.deadline.map(|after| start_at.unwrap_or(now).max(now).plus(after)),
            parallelism: submission.parallelism,
            idempotency: naming.key.clone(),
            labels,
            schedule: submission.schedule.clone(),
            trace: self.observe.link(naming.run, submission.trace.clone()),
            scheduled_at: submission.scheduled_at,
            ..Accepted::plain(program.ir.name.clone(), program.hash, payload)
        };
        let new = NewRun { id: naming.run, accepted };
        let sendable = match &naming.key {
            Some(key) => OperationId::new(key.key.clone()).ok(),
            None => ids::submission_id(naming.run),
        };
        let id = sendable.clone().unwrap_or_else(ids::operation_id);
        match self.until_known(&id, || self.take_in(&naming, &new)).await {
            // The key cannot be sent as a header; the caller, who chose it, can send it again in the body.
            Err(EngineError::OutcomeUnknown { why, .. }) if sendable.is_none() => {
                Err(StoreError::OutcomeUnknown(why).into())
            }
            answer => answer,
        }
    }

    /// An id for a run that is about to be submitted.
    pub fn new_run_id(&self) -> RunId {
        ids::run_id(self.clock.now(), 0)
    }

    fn naming(&self, submission: &Submission, input: &Payload, now: Timestamp) -> Naming {
        let body = Body::of_submission(submission.program.hash, input);
        let fresh = || submission.run.unwrap_or_else(|| ids::run_id(now, 0));
        match submission.idempotency_key.as_deref() {
            None => Naming { run: fresh(), key: None, body, repeated: false },
            Some(key) => match ids::submitted_run(key, now) {
                Some(run) => Naming { run, key: None, body, repeated: true },
                None => Naming::by_key(fresh(), key, body),
            },
        }
    }

    /// Submits the run to the hot store. If the run exists already, that is the answer to an earlier try.
    pub(super) async fn take_in(&self, naming: &Naming, new: &NewRun) -> Result<Acceptance, EngineError> {
        let error = match self.hot.accept(new.clone()).await {
            Ok(acceptance) => return Ok(acceptance),
            Err(error) => error,
        };
        let is_there = match &error {
            StoreError::Refused(Refusal::RunExists(run)) | StoreError::Diverged { run, .. } => *run == new.id,
            // A process of another release may have just accepted the run: the hot store compares only the hashes.
            StoreError::Refused(Refusal::KeyReused { .. }) => true,
            // Another run has the key in the archive, from a try that went through another server.
            StoreError::Corrupt(_) => naming.key.is_some(),
            _ => false,
        };
        if !is_there {
            return Err(error.into());
        }
        if let Some(known) = self.known(naming).await? {
            return Ok(known);
        }
        // The run may not be in the archive yet.
        self.hot.archived().await.map_err(StoreError::not_applied)?;
        match self.known(naming).await? {
            Some(known) => Ok(known),
            None => match self.found(naming).await? {
                true => Ok(Acceptance::New(naming.run)),
                false => Err(error.into()),
            },
        }
    }

    /// The run of an earlier identical submission, if there is one.
    pub(super) async fn known(&self, naming: &Naming) -> Result<Option<Acceptance>, EngineError> {
        if let Some(wanted) = &naming.key {
            return match self.archive.by_idempotency_key(&wanted.key).await? {
                None => Ok(None),
                Some((run, body)) if naming.body.is(body) => Ok(Some(Acceptance::Existing(run))),
                Some((run, _)) => Err(Refusal::KeyReused { key: wanted.key.clone(), run }.into()),
            };
        }
        match naming.repeated && self.found(naming).await? {
            true => Ok(Some(Acceptance::Existing(naming.run))),
            false => Ok(None),
        }
    }

    /// Whether the run is archived with the content of this submission.
    async fn found(&self, naming: &Naming) -> Result<bool, EngineError> {
        let first = self.archive.events(naming.run, 0, 1).await?;
        let Some(EventKind::RunAccepted(accepted)) = first.first().map(|event| &event.kind) else {
            return Ok(false);
        };
        if Body::of_submission(accepted.definition, &accepted.input).hash == naming.body.hash {
            return Ok(true);
        }
        let key = ids::submission_id(naming.run).map_or_else(|| "?".into(), |id| id.as_str().into());
        Err(Refusal::KeyReused { key, run: naming.run }.into())
    }
}

fn check_priority(priority: Option<u8>) -> Result<(), EngineError> {
    match priority {
        Some(priority) if !(1..=10).contains(&priority) => {
            Err(EngineError::BadRequest(format!("the priority of a run is 1 to 10, and not {priority}")))
        }
        _ => Ok(()),
    }
}

async fn concurrency(submission: &Submission, input: &Value) -> Result<Option<Concurrency>, EngineError> {
    if let Some(given) = &submission.concurrency {
        return Ok(Some(given.clone()));
    }
    let Some((key, limit)) = submission.program.concurrency() else { return Ok(None) };
    let key = render_text(key, &Scope::new(input.clone())).await.map_err(EngineError::ConcurrencyKey)?;
    Ok(Some(Concurrency { key: key.into(), limit: limit.get() }))
}

/// The labels of the workflow, overridden by those of the submission.
async fn labels(submission: &Submission, input: &Value) -> Result<Labels, EngineError> {
    check_labels(&submission.labels).map_err(|bad| EngineError::BadRequest(bad.to_string()))?;
    let mut labels = render_labels(&submission.program, input).await.map_err(EngineError::BadRequest)?;
    labels.extend(submission.labels.clone());
    check_labels(&labels).map_err(|bad| EngineError::BadRequest(bad.to_string()))?;
    Ok(labels)
}
