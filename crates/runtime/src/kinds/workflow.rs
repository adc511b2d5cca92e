//! `workflow`: runs another workflow.

use serde_json::{Map, Value};
use switchyard_core::NodeError;
use switchyard_lang::program::CompiledWorkflow;

use super::{Call, Done, children};
use crate::AttemptError;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledWorkflow) -> Result<Done, AttemptError> {
    match &call.task.children {
        None => children::wait_for_one(call, &spec.body, input(call).await?).await,
        Some(ended) => {
            let failed = |why| NodeError::retryable("workflow_failed", format!("the child run: {why}"));
            Ok(Done::Output(children::only_output(call, ended, failed).await?))
        }
    }
}

/// The input of the child: without `input` an empty map, so that an error about `input.x` names the missing field.
async fn input(call: &Call<'_>) -> Result<Value, NodeError> {
    match call.node.input {
        Some(_) => call.input().await,
        None => Ok(Value::Object(Map::new())),
    }
}
