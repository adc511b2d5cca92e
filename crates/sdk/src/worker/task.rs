//! Executes one task: calls its handler, sends heartbeats, and settles it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::Value;
use switchyard_api::HeldTask;
use switchyard_base::HumanDuration;
use switchyard_client::{Error, TaskFailure};
use switchyard_core::NodeError;
use switchyard_core::run::ClaimRef;
use switchyard_runtime::handlers::{Beat, Cancellation, HandlerCall, HeldClaim, LogStream, Stopped};
use switchyard_runtime::{AttemptError, ClaimError};
use switchyard_store::SystemClock;

use super::claim::ClaimThere;
use super::claiming::Claiming;

/// The pause between two tries to settle while the server does not answer.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);

/// The outcome of a task, as reported to the server.
enum Settlement {
    Succeeded(Value),
    Failed(NodeError),
    Released,
}

pub(super) async fn carry_out(claiming: &Claiming, task: HeldTask) {
    let claim = task.claim_ref();
    let held =
        Arc::new(ClaimThere { client: claiming.client.clone(), claim: claim.clone(), lease: claiming.lease });
    let cancellation = Cancellation::default();
    let logs = Arc::new(LogStream::new(held.clone(), Arc::new(SystemClock)));
    let call = call(claiming, task, &cancellation, held.clone(), logs.clone());
    let ended = tokio::select! {
        biased;
        ended = cancellation.carry(call, claiming.cancel_grace) => ended,
        lost = keep(&held, claiming.lease, &cancellation) => match lost {},
        () = claiming.hand_back.cancelled() => Stopped::Dropped,
    };
    logs.end().await;
    let settlement = match ended {
        Stopped::Ended(Ok(output)) | Stopped::WhenAsked(Ok(output)) => Settlement::Succeeded(output),
        // The node did not fail: the server did not store a checkpoint.
        Stopped::Ended(Err(AttemptError::StoreUnavailable(_))) => Settlement::Released,
        Stopped::Ended(Err(AttemptError::Node(error))) => Settlement::Failed(error),
        Stopped::WhenAsked(Err(_)) | Stopped::Dropped => Settlement::Released,
    };
    settle(claiming, &claim, settlement).await;
}

/// Calls the handler under the node's time limit, with panics caught.
async fn call(
    claiming: &Claiming,
    task: HeldTask,
    cancellation: &Cancellation,
    claim: Arc<ClaimThere>,
    logs: Arc<LogStream>,
) -> Result<Value, AttemptError> {
    let Some(handler) = claiming.handlers.get(&task.function) else {
        let message = format!("no function `{}` is registered with this worker", task.function);
        return Err(NodeError::permanent("unknown_function", message).into());
    };
    let limit = task.timeout.as_deref().and_then(|text| text.parse::<HumanDuration>().ok());
    let made = HandlerCall {
        run: task.run_id,
        node: task.node,
        attempt: task.attempt,
        input: task.input,
        checkpoint: Some(task.checkpoint).filter(|kept| !kept.is_null()),
        cancellation: cancellation.clone(),
        claim,
        logs,
    };
    let answer = AssertUnwindSafe(made.make(&**handler)).catch_unwind();
    let answer = match limit {
        Some(limit) => tokio::time::timeout(limit.0, answer)
            .await
            .map_err(|_| NodeError::retryable("timeout", format!("it did not end within {limit}")))?,
        None => answer.await,
    };
    answer.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or(panic.downcast_ref::<String>().map(String::as_str));
        let said = text.unwrap_or("it did not say why");
        Err(NodeError::retryable("panic", format!("the handler panicked: {said}")).into())
    })
}

/// Sends heartbeats to the server, and cancels the handler if the server says so or the claim is lost.
async fn keep(held: &ClaimThere, lease: Duration, cancellation: &Cancellation) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(lease / 3).await;
        match held.heartbeat().await {
            Ok(Beat::GoOn) => {}
            // Another worker may have the task: this handler's result will not count.
            Ok(Beat::Stop) | Err(ClaimError::Lost) => cancellation.request(),
            Err(error) => {
                let ClaimRef { run, node, .. } = &held.claim;
                tracing::warn!(%run, %node, %error, "heartbeat failed");
            }
        }
    }
}

/// Reports the outcome of a task; repeats that for the length of the lease while the server does not answer.
async fn settle(claiming: &Claiming, claim: &ClaimRef, settlement: Settlement) {
    let until = tokio::time::Instant::now() + claiming.lease;
    loop {
        let Err(error) = say(claiming, claim, &settlement).await else { return };
        let refused = error.problem().is_some_and(|problem| problem.status < 500);
        if refused || tokio::time::Instant::now() >= until {
            let ClaimRef { run, node, claim } = claim;
            tracing::warn!(%run, %node, claim, %error, "what became of a task did not count");
            return;
        }
        tokio::time::sleep(AFTER_TROUBLE).await;
    }
}

async fn say(claiming: &Claiming, claim: &ClaimRef, settlement: &Settlement) -> Result<(), Error> {
    match settlement {
        Settlement::Succeeded(output) => claiming.client.complete(claim, output).await,
        Settlement::Failed(error) => {
            let (code, message) = (error.code.to_string(), short(&error.message));
            claiming.client.fail(claim, &TaskFailure { code, message, retryable: error.retryable }).await
        }
        Settlement::Released => claiming.client.release(claim).await,
    }
}

/// Shortens an error message: the server rejects messages of more than 4 KiB, and the failure must still be reported.
fn short(message: &str) -> String {
    const BYTES_MAX: usize = 4_000;
    let end = message.floor_char_boundary(BYTES_MAX);
    if end < message.len() { format!("{}…", &message[..end]) } else { message.to_owned() }
}
