//! `loop`: runs a child workflow again and again.

use serde_json::{Value, json};
use switchyard_core::NodeError;
use switchyard_lang::program::CompiledLoop;

use super::{Call, Done, children, expression_error};
use crate::AttemptError;
use crate::evaluate::{holds, render};

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledLoop) -> Result<Done, AttemptError> {
    let Some(ended) = &call.task.children else {
        return next(call, spec, Value::Null).await;
    };
    let iteration = call.task.rounds;
    let failed = |why| NodeError::retryable("iteration_failed", format!("iteration {iteration}: {why}"));
    let output = children::only_output(call, ended, failed).await?;
    if is_done(call, spec, &output).await? {
        return Ok(Done::Output(output));
    }
    next(call, spec, output).await
}

async fn is_done(call: &Call<'_>, spec: &CompiledLoop, output: &Value) -> Result<bool, NodeError> {
    let mut scope = call.scope.clone();
    scope.set("output", output.clone());
    scope.set("iteration", json!(call.task.rounds));
    holds(&spec.until, &scope).await.map_err(|error| expression_error(&error))
}

/// Starts an iteration.
async fn next(call: &Call<'_>, spec: &CompiledLoop, last: Value) -> Result<Done, AttemptError> {
    if call.task.rounds >= spec.max_iterations {
        let message = format!("`until` is not true after {} iterations", call.task.rounds);
        return Err(NodeError::permanent("max_iterations", message).into());
    }
    children::wait_for_one(call, &spec.body, input(call, last).await?).await
}

/// The input of an iteration: without `input`, the output of the previous iteration.
async fn input(call: &Call<'_>, last: Value) -> Result<Value, NodeError> {
    let Some(template) = &call.node.input else { return Ok(last) };
    let mut scope = call.scope.clone();
    scope.set("last", last);
    scope.set("iteration", json!(call.task.rounds + 1));
    render(template, &scope).await.map_err(|error| expression_error(&error))
}
