//! The life of a task that is called outside this program: begun when it is handed out, finished when its worker says
//! what became of it.
//!
//! What both need comes from the definition and from the run, so another process may finish what this one has begun.

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_core::run::{Task, TaskOutcome};
use switchyard_store::StoreError;

use super::Prepared;
use super::prepare::{self, Preparation, prepare};
use crate::AttemptError;
use crate::kinds::Services;

/// What there is to do about a task that was claimed for a worker.
#[derive(Debug)]
pub enum Begun {
    /// The worker has to call it.
    Call(Box<Prepared>),
    /// There is nothing to call: it is skipped, its result is remembered, or it failed before its call.
    Settle(TaskOutcome),
}

/// What a worker says became of its task.
#[derive(Debug)]
pub enum Report {
    Succeeded(Value),
    Failed(NodeError),
    /// Not done, not failed.
    Released,
}

/// Looks at a claimed task before its worker does. An error is the store's: another process may try.
pub async fn begin(services: &Services, task: &Task) -> Result<Begun, StoreError> {
    match prepare(services, task).await {
        Ok(Preparation::Ready(prepared)) => Ok(Begun::Call(prepared)),
        Ok(Preparation::Settled(outcome)) => Ok(Begun::Settle(outcome)),
        Err(error) => error.outcome().map(Begun::Settle),
    }
}

/// What a worker's report comes to: its output is kept, and remembered if the node has a cache. An error is the
/// store's, and the task is still the worker's.
pub async fn finish(services: &Services, task: &Task, report: Report) -> Result<TaskOutcome, StoreError> {
    match report {
        Report::Failed(error) => Ok(TaskOutcome::Failed(error)),
        Report::Released => Ok(TaskOutcome::HandedBack),
        Report::Succeeded(output) => {
            prepare::succeed(services, task, &output).await.or_else(AttemptError::outcome)
        }
    }
}
