//! `map`: runs a child workflow for each element of a list.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use switchyard_core::run::{Child, ChildSpec, ChildrenPlan, EndStatus};
use switchyard_core::{NodeError, Payload};
use switchyard_lang::program::CompiledMap;
use switchyard_lang::spec::ItemError;
use switchyard_lang::{Program, Scope};

use super::{Call, Done, children, expression_error};
use crate::AttemptError;
use crate::evaluate::render;
use crate::payloads::PAYLOAD_BYTES_MAX;

const ITEMS_MAX: usize = 100_000;

/// The largest size of all inline inputs together: one event of the run's history contains them.
const INLINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How many outputs are loaded at once.
const LOADS_MAX: usize = 16;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledMap) -> Result<Done, AttemptError> {
    match &call.task.children {
        None => start(call, spec).await,
        Some(ended) => gather(call, spec, ended).await.map(Done::Output),
    }
}

async fn start(call: &Call<'_>, spec: &CompiledMap) -> Result<Done, AttemptError> {
    let items = items(call, spec).await?;
    if items.is_empty() {
        return Ok(Done::Output(json!([])));
    }
    let program = children::program(call, &spec.body).await?;
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
    Ok(children::wait_for(ChildrenPlan {
        timeout_at: children::timeout_at(call),
        workflow: program.ir.name.clone(),
        definition: program.hash,
        children: plan(call, &program, items).await?,
        concurrency: spec.concurrency.map_or(count, Into::into),
        stop_on_failure: spec.on_item_error == ItemError::Fail,
    }))
}

async fn items(call: &Call<'_>, spec: &CompiledMap) -> Result<Vec<Value>, NodeError> {
    let bad = |message: String| NodeError::permanent("map_items", message);
    match call.render(&spec.items).await? {
        Value::Array(items) if items.len() > ITEMS_MAX => {
            Err(bad(format!("`items` has {} elements, more than the {ITEMS_MAX} it may have", items.len())))
        }
        Value::Array(items) => Ok(items),
        other => Err(bad(format!("`items` is not a list but {}", kind(&other)))),
    }
}

async fn plan(
    call: &Call<'_>,
    program: &Arc<Program>,
    items: Vec<Value>,
) -> Result<Vec<ChildSpec>, AttemptError> {
    let count = items.len();
    let mut scope = call.scope.clone();
    let mut inline_bytes = 0;
    let mut children = Vec::with_capacity(count);
    for (index, item) in items.into_iter().enumerate() {
        // Yields to the timeout: this loop does not await while inputs are small.
        tokio::task::consume_budget().await;
        let child = child(call, program, &mut scope, index, item).await;
        let child = child.map_err(|error| about_item(index, count, error))?;
        inline_bytes += child.input.as_inline().map_or(0, |text| text.len() as u64);
        if inline_bytes > INLINE_BYTES_MAX {
            let message =
                format!("the inputs of {count} items have more than {INLINE_BYTES_MAX} bytes together");
            return Err(NodeError::permanent("map_items", message).into());
        }
        children.push(child);
    }
    Ok(children)
}

/// The specification of one child. Without `input`, the child gets its item.
async fn child(
    call: &Call<'_>,
    program: &Arc<Program>,
    scope: &mut Scope,
    index: usize,
    item: Value,
) -> Result<ChildSpec, AttemptError> {
    let input = match &call.node.input {
        None => item,
        Some(template) => {
            scope.set("item", item);
            scope.set("index", json!(index));
            render(template, scope).await.map_err(|error| expression_error(&error))?
        }
    };
    children::spec(call, program, input).await
}

async fn gather(call: &Call<'_>, spec: &CompiledMap, ended: &[Child]) -> Result<Value, AttemptError> {
    if spec.on_item_error == ItemError::Fail
        && let Some(index) = first_failed(ended)
    {
        let message = format!("{}: {}", item_name(index, ended.len()), children::why(&ended[index]));
        return Err(NodeError::retryable("item_failed", message).into());
    }
    let outputs: Vec<Payload> = ended.iter().map(output).collect();
    check_size(&outputs)?;
    let loads = futures::stream::iter(outputs).map(|output| load(call, output)).buffered(LOADS_MAX);
    Ok(Value::Array(loads.try_collect().await?))
}

/// The child that the error names. A failed child comes first: after a failure, children before it may be cancelled
/// and those after it not started.
fn first_failed(ended: &[Child]) -> Option<usize> {
    let failed = |child: &Child| child.end.as_ref().is_some_and(|end| end.status == EndStatus::Failed);
    let ended_badly = |child: &Child| child.end.is_some() && !children::has_succeeded(child);
    let position = |is: &dyn Fn(&Child) -> bool| ended.iter().position(is);
    position(&failed).or_else(|| position(&ended_badly)).or_else(|| position(&|child| child.end.is_none()))
}

fn output(child: &Child) -> Payload {
    match &child.end {
        Some(end) if end.status == EndStatus::Succeeded => end.output.clone(),
        _ => Payload::null(),
    }
}

/// Refuses outputs that are too large together, before they are loaded into one list.
fn check_size(outputs: &[Payload]) -> Result<(), NodeError> {
    let bytes: u64 = outputs.iter().map(Payload::size_bytes).sum();
    if bytes > PAYLOAD_BYTES_MAX as u64 {
        let message =
            format!("the outputs have {bytes} bytes together, more than the {PAYLOAD_BYTES_MAX} of a value");
        return Err(NodeError::permanent("too_large", message));
    }
    Ok(())
}

async fn load(call: &Call<'_>, output: Payload) -> Result<Value, AttemptError> {
    Ok(call.services.payloads.load(&output).await?)
}

/// The name of an item in messages, counted from 1.
fn item_name(index: usize, count: usize) -> String {
    format!("item {} of {count}", index + 1)
}

fn about_item(index: usize, count: usize, error: AttemptError) -> AttemptError {
    let AttemptError::Node(error) = error else { return error };
    let message = format!("{}: {}", item_name(index, count), error.message);
    NodeError { message: message.into(), ..error }.into()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
