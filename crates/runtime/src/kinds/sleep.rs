//! `sleep`: waits until a moment. The timer duty wakes it, so no worker is occupied.

use switchyard_core::NodeError;
use switchyard_core::run::WaitFor;
use switchyard_lang::program::CompiledSleep;

use super::{Call, expression_error};
use crate::evaluate::evaluate;

/// The moment to wait for. A moment in the past also becomes a wait, which ends at once, so that all sleeps work
/// alike.
pub(super) async fn execute(call: &Call<'_>, spec: &CompiledSleep) -> Result<WaitFor, NodeError> {
    let sleep = (spec.clone(), call.services.clock.now());
    let until = evaluate(&sleep, call.scope, |(spec, now), scope, budget| spec.wake_at(scope, *now, budget));
    let until = until.await.map_err(|error| expression_error(&error))?;
    Ok(WaitFor::Timer { until })
}
