//! `function`: calls a handler of this worker by name.

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_lang::program::CompiledFunction;

use super::Call;
use crate::AttemptError;
use crate::handlers::HandlerCall;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledFunction) -> Result<Value, AttemptError> {
    let Some(handler) = call.services.handlers.get(&spec.function) else {
        return Err(unknown(call, &spec.function).into());
    };
    let checkpoint = match &call.task.checkpoint {
        Some(kept) => Some(call.services.payloads.load(kept).await?),
        None => None,
    };
    let made = HandlerCall {
        run: call.task.run,
        node: call.task.node.clone(),
        attempt: call.task.attempt,
        input: call.input().await?,
        checkpoint,
        cancellation: call.held.cancellation.clone(),
        claim: call.held.claim.clone(),
        logs: call.held.logs.clone(),
    };
    made.make(&**handler).await
}

fn unknown(call: &Call<'_>, function: &str) -> NodeError {
    let known: Vec<&str> = call.services.handlers.names().collect();
    let message = format!(
        "no function `{function}` is registered with this worker; it has {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    NodeError::permanent("unknown_function", message)
}
