//! Shared code of `map`, `loop` and `workflow`: child runs and their results.

use std::sync::Arc;

use serde_json::Value;
use switchyard_core::run::{Child, ChildSpec, ChildrenPlan, EndStatus, WaitFor};
use switchyard_core::{NodeError, Timestamp};
use switchyard_lang::{Body, Program};

use super::{Call, Done};
use crate::evaluate::{prepare_input, render_labels};
use crate::{AttemptError, ids};

/// The deepest nesting of runs. A workflow that calls itself ends here.
const DEPTH_MAX: u32 = 16;

/// The child workflow, available to all processes when this returns.
pub(super) async fn program(call: &Call<'_>, body: &Body) -> Result<Arc<Program>, AttemptError> {
    if call.task.depth >= DEPTH_MAX {
        let message = format!("this run has {DEPTH_MAX} runs above it, and may not start another below");
        return Err(NodeError::permanent("too_deep", message).into());
    }
    Ok(call.services.catalog.body(body).await?)
}

/// The specification of a child run. It stays in the partition of its parent, whose script starts it.
pub(super) async fn spec(
    call: &Call<'_>,
    program: &Arc<Program>,
    input: Value,
) -> Result<ChildSpec, AttemptError> {
    let input =
        prepare_input(program, input).await.map_err(|e| NodeError::permanent("input", e.to_string()))?;
    let labels = render_labels(program, &input).await.map_err(|why| NodeError::permanent("labels", why))?;
    Ok(ChildSpec {
        labels,
        run: ids::run_id(call.services.clock.now(), call.task.run.partition()),
        input: call.services.payloads.keep(&input).await?,
    })
}

pub(super) fn wait_for(plan: ChildrenPlan) -> Done {
    Done::Waiting(WaitFor::Children(Box::new(plan)))
}

/// Waits for a single child run.
pub(super) async fn wait_for_one(call: &Call<'_>, body: &Body, input: Value) -> Result<Done, AttemptError> {
    let program = program(call, body).await?;
    let child = spec(call, &program, input).await?;
    Ok(wait_for(ChildrenPlan {
        timeout_at: timeout_at(call),
        workflow: program.ir.name.clone(),
        definition: program.hash,
        children: vec![child],
        concurrency: 1,
        stop_on_failure: true,
    }))
}

/// The output of a single child run, or an error that explains why there is none.
pub(super) async fn only_output(
    call: &Call<'_>,
    children: &[Child],
    failed: impl FnOnce(String) -> NodeError,
) -> Result<Value, AttemptError> {
    let child = children.first().unwrap_or(&Child { end: None });
    match &child.end {
        Some(end) if end.status == EndStatus::Succeeded => {
            Ok(call.services.payloads.load(&end.output).await?)
        }
        _ => Err(failed(why(child)).into()),
    }
}

pub(super) fn has_succeeded(child: &Child) -> bool {
    child.end.as_ref().is_some_and(|end| end.status == EndStatus::Succeeded)
}

/// Why a run did not succeed.
pub(super) fn why(child: &Child) -> String {
    match &child.end {
        None => "was never started".to_owned(),
        Some(end) => {
            let why = match (&end.error, end.status) {
                (Some(error), _) => error.to_string(),
                (None, EndStatus::Cancelled) => "was cancelled".to_owned(),
                (None, _) => "failed".to_owned(),
            };
            end.run.map_or(why.clone(), |run| format!("{run}: {why}"))
        }
    }
}

/// The end of the node's time-out, which covers all its child runs, from the first delivery of the node to a worker.
pub(super) fn timeout_at(call: &Call<'_>) -> Option<Timestamp> {
    call.node.timeout.map(|timeout| call.task.started_at.plus(timeout))
}
