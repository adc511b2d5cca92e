//! `sleep`: waits for a moment. The timer duty wakes it, no worker is held.

use switchyard_core::NodeError;
use switchyard_core::run::WaitFor;
use switchyard_lang::program::CompiledSleep;

use super::{Call, expression_error};

/// A moment that has passed is waited for as well, and comes at once: one way for all sleeps.
pub(super) fn execute(call: &Call<'_>, spec: &CompiledSleep) -> Result<WaitFor, NodeError> {
    let until =
        spec.wake_at(call.scope, call.services.clock.now()).map_err(|error| expression_error(&error))?;
    Ok(WaitFor::Timer { until })
}
