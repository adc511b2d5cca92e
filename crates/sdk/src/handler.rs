//! Wraps a typed function as the handler that a worker calls.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_runtime::{AttemptError, HandlerContext, Handlers};
use tracing::Instrument;

use crate::{Context, HandlerError};

/// Registers a function as the handler with this name.
pub(crate) fn register<I, O, F, Fut>(handlers: &mut Handlers, name: &str, function: F)
where
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
    F: Fn(I, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, HandlerError>> + Send + 'static,
{
    let name: Arc<str> = name.into();
    let function = Arc::new(function);
    handlers.register_fn(name.clone(), move |input, call| {
        typed_call(name.clone(), function.clone(), input, call)
    });
}

async fn typed_call<I, O, F, Fut>(
    name: Arc<str>,
    function: Arc<F>,
    input: Value,
    call: HandlerContext,
) -> Result<Value, AttemptError>
where
    I: DeserializeOwned,
    O: Serialize,
    F: Fn(I, Context) -> Fut,
    Fut: Future<Output = Result<O, HandlerError>>,
{
    // Permanent: another attempt would get the same input.
    let input = serde_json::from_value(input).map_err(|error| {
        NodeError::permanent("input", format!("the input is not what `{name}` takes: {error}"))
    })?;
    let context = Context::new(call, &name);
    let span = context.span().clone();
    let output = function(input, context).instrument(span).await?;
    let output = serde_json::to_value(output).map_err(|error| {
        NodeError::permanent("output", format!("what `{name}` gave is not JSON: {error}"))
    })?;
    Ok(output)
}
