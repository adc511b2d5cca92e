//! From a claimed task to its outcome: condition, cache, time-out, panic, payloads.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use switchyard_core::run::{SkipReason, Task, TaskOutcome};
use switchyard_core::{Hash, NodeError};
use switchyard_lang::{CompiledKind, CompiledNode, NodeView, Program, Scope};

use super::cache;
use crate::kinds::{self, Call, Done, Services};
use crate::payloads::PayloadError;

pub(super) async fn execute(services: &Services, task: &Task) -> TaskOutcome {
    if task.skip {
        return TaskOutcome::Skipped(SkipReason::NoNeedFired);
    }
    // A panic in one handler must not take the other slots of this process with it.
    match AssertUnwindSafe(attempt(services, task)).catch_unwind().await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => TaskOutcome::Failed(error),
        Err(panic) => TaskOutcome::Failed(NodeError::retryable("panic", said(panic.as_ref()))),
    }
}

async fn attempt(services: &Services, task: &Task) -> Result<TaskOutcome, NodeError> {
    let program = services.catalog.get(task.definition).await.map_err(kinds::catalog_error)?;
    let node = program.node(task.ix);
    let scope = scope(services, task).await?;
    if !condition_holds(task, node, &scope)? {
        return Ok(TaskOutcome::Skipped(SkipReason::Condition));
    }
    let cache_key = cache_key(task, &program, node, &scope)?;
    if let Some(key) = &cache_key
        && let Some(hit) = cache::look_up(services, &program, key).await
    {
        return Ok(TaskOutcome::Succeeded(hit));
    }
    let call = Call { task, program: &program, node, scope: &scope, services };
    match within(time_limit(node), kinds::execute(call)).await? {
        Done::Waiting(on) => Ok(TaskOutcome::Waiting(on)),
        Done::Output(output) => {
            let output = services.payloads.keep(&output).await.map_err(output_error)?;
            if let (Some(key), Some(cache)) = (cache_key, &node.cache) {
                cache::remember(services, &program, &key, output.clone(), cache.ttl).await;
            }
            Ok(TaskOutcome::Succeeded(output))
        }
    }
}

/// What the node's expressions can see.
async fn scope(services: &Services, task: &Task) -> Result<Scope, NodeError> {
    let mut scope = Scope::new(services.payloads.load(&task.input).await.map_err(kinds::payload_error)?);
    scope.set_run(&task.run.to_string(), &task.workflow, task.attempt);
    for read in &task.reads {
        let error = read
            .error
            .as_ref()
            .map_or(Value::Null, |error| json!({"code": *error.code, "message": *error.message}));
        let view = NodeView {
            status: read.state.as_str().to_owned(),
            output: services.payloads.load(&read.output).await.map_err(kinds::payload_error)?,
            error,
        };
        scope.set_node(&*read.node, view);
    }
    Ok(scope)
}

/// Asked until it is first found true: a node that has started runs of its own is past its condition.
fn condition_holds(task: &Task, node: &CompiledNode, scope: &Scope) -> Result<bool, NodeError> {
    match &node.when {
        Some(when) if task.rounds == 0 && task.children.is_none() => {
            when.eval_bool(scope).map_err(|error| kinds::expression_error(&error))
        }
        _ => Ok(true),
    }
}

/// The same node that would act on the same has the same result.
fn cache_key(
    task: &Task,
    program: &Arc<Program>,
    node: &CompiledNode,
    scope: &Scope,
) -> Result<Option<String>, NodeError> {
    let Some(cache) = &node.cache else { return Ok(None) };
    let key = match &cache.key {
        Some(key) => Some(key.render(scope)),
        None => node.rendered(scope),
    };
    let key = match key {
        Some(key) => key.map_err(|error| kinds::expression_error(&error))?,
        // What such a node acts on is whatever it can see.
        None => json!([format!("{:?}", task.input), format!("{:?}", task.reads)]),
    };
    let fingerprint = program.ir.node(task.ix).fingerprint;
    let digest = Hash::of(format!("{}/{fingerprint:016x}/{key}", task.node).as_bytes());
    Ok(Some(digest.hex()))
}

/// For `wait` and `hitl` the time-out is how long to wait, which is the run's business.
fn time_limit(node: &CompiledNode) -> Option<Duration> {
    match node.kind {
        CompiledKind::Wait(_) | CompiledKind::Hitl(_) => None,
        _ => node.timeout,
    }
}

async fn within(
    limit: Option<Duration>,
    work: impl Future<Output = Result<Done, NodeError>>,
) -> Result<Done, NodeError> {
    let Some(limit) = limit else { return work.await };
    match tokio::time::timeout(limit, work).await {
        Ok(answer) => answer,
        Err(_) => {
            let message =
                format!("it did not end within {}", switchyard_lang::duration::HumanDuration(limit));
            Err(NodeError::retryable("timeout", message))
        }
    }
}

fn output_error(error: PayloadError) -> NodeError {
    match error {
        PayloadError::TooLarge { .. } => NodeError::permanent("output_too_large", error.to_string()),
        other => kinds::payload_error(other),
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("it did not say why"))
}
