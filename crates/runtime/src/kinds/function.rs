//! `function`: calls a handler of this worker by name.

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_lang::program::CompiledFunction;

use super::Call;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledFunction) -> Result<Value, NodeError> {
    let Some(handler) = call.services.handlers.get(&spec.function) else {
        return Err(unknown(call, &spec.function));
    };
    handler.call(call.input()?, call.context()).await
}

fn unknown(call: &Call<'_>, function: &str) -> NodeError {
    let known: Vec<&str> = call.services.handlers.names().collect();
    let message = format!(
        "no function `{function}` is registered with this worker; it has {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    NodeError::permanent("unknown_function", message)
}
