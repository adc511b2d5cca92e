//! The steps before and after the call of a node, for every kind of worker: skipping, condition, cache, payloads.

use std::sync::Arc;

use serde_json::{Value, json};
use switchyard_core::run::{EventKind, SkipReason, Task, TaskOutcome};
use switchyard_core::{NodeError, RunId, Timestamp};
use switchyard_lang::{CompiledNode, ExprError, NodeView, Program, Scope};

use super::cache;
use super::cache_key::{self, ActsOn};
use crate::AttemptError;
use crate::evaluate::{evaluate, holds, render};
use crate::kinds::{self, Services};
use crate::payloads::PayloadError;

/// The result of preparing a claimed task.
#[derive(Debug)]
pub(super) enum Preparation {
    /// The task needs no call: it is skipped, or its result is cached.
    Settled(TaskOutcome),
    /// The node has to be called.
    Ready(Box<Prepared>),
}

/// A task whose node has to be called, with the scope of its expressions.
#[derive(Debug)]
pub struct Prepared {
    pub program: Arc<Program>,
    pub scope: Scope,
    cache_key: Option<String>,
}

pub(super) async fn prepare(services: &Services, task: &Task) -> Result<Preparation, AttemptError> {
    if task.skip {
        return Ok(Preparation::Settled(TaskOutcome::Skipped(SkipReason::NoNeedFired)));
    }
    let program = services.catalog.get(task.definition).await?;
    let node = program.node(task.ix);
    let scope = scope(services, task, &program).await?;
    if !condition_holds(task, node, &scope).await? {
        return Ok(Preparation::Settled(TaskOutcome::Skipped(SkipReason::Condition)));
    }
    let cache_key = cache_key(task, &program, node, &scope).await?;
    if let Some(key) = &cache_key
        && let Some(hit) = cache::look_up(services, &program, key).await
    {
        return Ok(Preparation::Settled(TaskOutcome::Cached(hit)));
    }
    Ok(Preparation::Ready(Box::new(Prepared { program, scope, cache_key })))
}

impl Prepared {
    pub fn node(&self, task: &Task) -> &CompiledNode {
        self.program.node(task.ix)
    }

    /// The node's input; null if it has none. Not for `map` and `loop`, which have one for each child.
    pub async fn input(&self, task: &Task) -> Result<Value, NodeError> {
        kinds::input(self.node(task), &self.scope).await
    }

    /// Stores the output of the call, and caches it if the node has a cache.
    pub(super) async fn succeed(
        &self,
        services: &Services,
        task: &Task,
        output: &Value,
    ) -> Result<TaskOutcome, AttemptError> {
        keep(services, &self.program, self.node(task), self.cache_key.as_deref(), output).await
    }
}

/// Like [`Prepared::succeed`], for a task that another process may have prepared.
pub(super) async fn succeed(
    services: &Services,
    task: &Task,
    output: &Value,
) -> Result<TaskOutcome, AttemptError> {
    let program = services.catalog.get(task.definition).await?;
    let node = program.node(task.ix);
    let key = match &node.cache {
        Some(_) => cache_key(task, &program, node, &scope(services, task, &program).await?).await?,
        None => None,
    };
    keep(services, &program, node, key.as_deref(), output).await
}

async fn keep(
    services: &Services,
    program: &Program,
    node: &CompiledNode,
    cache_key: Option<&str>,
    output: &Value,
) -> Result<TaskOutcome, AttemptError> {
    let output = services.payloads.keep(output).await.map_err(output_error)?;
    if let (Some(key), Some(cache)) = (cache_key, &node.cache) {
        cache::remember(services, program, key, output.clone(), cache.ttl).await;
    }
    Ok(TaskOutcome::Succeeded(output))
}

/// The values that the node's expressions can see.
async fn scope(services: &Services, task: &Task, program: &Program) -> Result<Scope, AttemptError> {
    let mut scope = Scope::new(services.payloads.load(&task.input).await?);
    let tick = if program.reads_schedule { scheduled_at(services, task.run).await? } else { None };
    let tick = tick.map(|tick| tick.to_string());
    scope.set_run(&task.run.to_string(), &task.workflow, task.attempt, tick.as_deref());
    for read in &task.reads {
        let error = read
            .error
            .as_ref()
            .map_or(Value::Null, |error| json!({"code": *error.code, "message": *error.message}));
        let view = NodeView {
            status: read.state.as_str().to_owned(),
            output: services.payloads.load(&read.output).await?,
            error,
        };
        scope.set_node(&*read.node, view);
    }
    Ok(scope)
}

/// The tick for which a schedule started the run, or its topmost ancestor. Tasks do not carry it: few workflows read
/// it, and the acceptance of a run is in the archive before its first task is handed out.
async fn scheduled_at(services: &Services, mut run: RunId) -> Result<Option<Timestamp>, AttemptError> {
    loop {
        let first = services.archive.events(run, 0, 1).await?;
        let Some(EventKind::RunAccepted(accepted)) = first.first().map(|event| &event.kind) else {
            return Ok(None);
        };
        match (accepted.scheduled_at, &accepted.parent) {
            (Some(tick), _) => return Ok(Some(tick)),
            (None, Some(parent)) => run = parent.run,
            (None, None) => return Ok(None),
        }
    }
}

/// Whether the node's condition is true. It is not evaluated again once the node has started child runs.
async fn condition_holds(task: &Task, node: &CompiledNode, scope: &Scope) -> Result<bool, NodeError> {
    match &node.when {
        Some(when) if task.rounds == 0 && task.children.is_none() => {
            holds(when, scope).await.map_err(|error| kinds::expression_error(&error))
        }
        _ => Ok(true),
    }
}

/// The cache key: the same node with the same values has the same result.
async fn cache_key(
    task: &Task,
    program: &Arc<Program>,
    node: &CompiledNode,
    scope: &Scope,
) -> Result<Option<String>, NodeError> {
    let Some(cache) = &node.cache else { return Ok(None) };
    let key = match &cache.key {
        Some(key) => render(key, scope).await.map(Some),
        None => rendered(program, task, scope).await,
    };
    let key = key.map_err(|error| kinds::expression_error(&error))?;
    let acts_on = key.map_or_else(|| ActsOn::all_of(task), ActsOn::Value);
    Ok(Some(cache_key::digest(&task.node, program.ir.node(task.ix).fingerprint, acts_on)))
}

/// All values that the node acts on, if its fields contain them.
async fn rendered(program: &Arc<Program>, task: &Task, scope: &Scope) -> Result<Option<Value>, ExprError> {
    let scope = &with_secret_names(program.node(task.ix), scope);
    let node = (program.clone(), task.ix);
    evaluate(&node, scope, |(program, ix), scope, budget| {
        program.node(*ix).rendered(scope, budget).transpose()
    })
    .await
}

/// A scope with the names of secrets in place of their values: keys are stored, and a rotated secret must give the
/// same key.
fn with_secret_names(node: &CompiledNode, scope: &Scope) -> Scope {
    let mut scope = scope.clone();
    let names = node.secrets.iter().map(|name| (name.clone(), Value::String(format!("secret {name}"))));
    scope.set("secrets", Value::Object(names.collect()));
    scope
}

fn output_error(error: PayloadError) -> AttemptError {
    match error {
        PayloadError::TooLarge { .. } => NodeError::permanent("output_too_large", error.to_string()).into(),
        other => other.into(),
    }
}
