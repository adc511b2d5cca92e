//! Executes a claimed task in this process: prepares it, calls the node under a time limit, and catches panics.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use switchyard_core::NodeError;
use switchyard_core::run::{Task, TaskOutcome};
use switchyard_store::StoreError;

use super::local::Held;
use super::prepare::{Preparation, prepare};
use crate::AttemptError;
use crate::kinds::{self, Call, Done, Services, TIMEOUT};
use crate::secrets::Revealed;

/// Executes a task. `Err` is an error of the store: the task has no outcome.
pub(super) async fn execute(
    services: &Services,
    task: &Task,
    held: &Held,
) -> Result<TaskOutcome, StoreError> {
    // A panic in one handler must not stop the other slots of this process.
    match AssertUnwindSafe(attempt(services, task, held)).catch_unwind().await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(error)) => error.outcome(),
        Err(panic) => Ok(TaskOutcome::Failed(NodeError::retryable("panic", said(panic.as_ref())))),
    }
}

async fn attempt(services: &Services, task: &Task, held: &Held) -> Result<TaskOutcome, AttemptError> {
    let prepared = match prepare(services, task).await? {
        Preparation::Settled(outcome) => return Ok(outcome),
        Preparation::Ready(prepared) => prepared,
    };
    let node = prepared.node(task);
    let (program, scope) = (&prepared.program, &prepared.scope);
    let call = Call { task, program, node, scope, services, held, secrets: &Revealed::NONE };
    match within(task.limit.map(|limit| limit.lasts), kinds::execute(call)).await? {
        Done::Waiting(on) => Ok(TaskOutcome::Waiting(on)),
        Done::Output(output) => prepared.succeed(services, task, &output).await,
    }
}

/// Applies the time limit. The store enforces the same limit for workers that fail to; here it takes effect at once.
async fn within(
    limit: Option<Duration>,
    work: impl Future<Output = Result<Done, AttemptError>>,
) -> Result<Done, AttemptError> {
    let Some(limit) = limit else { return work.await };
    match tokio::time::timeout(limit, work).await {
        Ok(answer) => answer,
        Err(_) => {
            let message = format!("it did not end within {}", switchyard_base::HumanDuration(limit));
            Err(NodeError::retryable(TIMEOUT, message).into())
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("it did not say why"))
}
