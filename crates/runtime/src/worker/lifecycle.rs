//! The lifecycle of a task that an external worker executes: begun when it is handed out, finished when the worker
//! reports the result.
//!
//! Both steps read everything from the definition and the run, so one process may finish a task that another began.

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_core::run::{Task, TaskOutcome};
use switchyard_store::StoreError;

use super::Prepared;
use super::prepare::{self, Preparation, prepare};
use crate::AttemptError;
use crate::kinds::Services;

/// The result of [`begin`].
#[derive(Debug)]
pub enum Begun {
    /// The worker has to execute the task.
    Call(Box<Prepared>),
    /// The task needs no call: it is skipped, its result is cached, or it failed before the call.
    Settle(TaskOutcome),
}

/// A worker's report about its task.
#[derive(Debug)]
pub enum Report {
    Succeeded(Value),
    Failed(NodeError),
    /// The worker hands the task back, neither done nor failed.
    Released,
}

/// Prepares a claimed task before its worker gets it. `Err` is an error of the store: another process may try.
pub async fn begin(services: &Services, task: &Task) -> Result<Begun, StoreError> {
    match prepare(services, task).await {
        Ok(Preparation::Ready(prepared)) => Ok(Begun::Call(prepared)),
        Ok(Preparation::Settled(outcome)) => Ok(Begun::Settle(outcome)),
        Err(error) => error.outcome().map(Begun::Settle),
    }
}

/// Turns a worker's report into an outcome: stores the output, and caches it if the node has a cache. `Err` is an
/// error of the store; the worker keeps the task.
pub async fn finish(services: &Services, task: &Task, report: Report) -> Result<TaskOutcome, StoreError> {
    match report {
        Report::Failed(error) => Ok(TaskOutcome::Failed(error)),
        Report::Released => Ok(TaskOutcome::HandedBack),
        Report::Succeeded(output) => {
            prepare::succeed(services, task, &output).await.or_else(AttemptError::outcome)
        }
    }
}
