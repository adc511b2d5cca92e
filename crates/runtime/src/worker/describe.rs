//! Descriptions of tasks for workers outside this process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchyard_base::HumanDuration;
use switchyard_core::ir::queue_name::type_of;
use switchyard_core::run::Task;
use switchyard_lang::CompiledKind;

use super::Prepared;
use crate::AttemptError;
use crate::handlers::idempotency_key;
use crate::kinds::Services;

impl Prepared {
    /// Describes a task with everything that an external worker needs.
    pub async fn describe(
        &self,
        services: &Services,
        task: &Task,
        lease: Duration,
    ) -> Result<Value, AttemptError> {
        let function = match &self.node(task).kind {
            CompiledKind::Function(spec) => spec.function.clone(),
            _ => Arc::from(""),
        };
        let checkpoint = match &task.checkpoint {
            Some(kept) => services.payloads.load(kept).await?,
            None => Value::Null,
        };
        let input = self.input(task).await?;
        let trace = services.observe.outgoing(task);
        Ok(json!({
            "run_id": task.run,
            "node": task.node,
            "claim": task.claim,
            "attempt": task.attempt,
            "type": type_of(&self.program.ir.node(task.ix).queue),
            "function": function,
            "input": input,
            "idempotency_key": idempotency_key(task.run, &task.node),
            "workflow": task.workflow,
            "definition": task.definition,
            "lease": HumanDuration(lease).to_string(),
            "checkpoint": checkpoint,
            "traceparent": trace.as_ref().map(|trace| &trace.traceparent),
            "tracestate": trace.as_ref().and_then(|trace| trace.tracestate.as_ref()),
            "timeout": task.limit.map(|limit| HumanDuration(limit.lasts).to_string()),
        }))
    }
}
