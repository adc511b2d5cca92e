//! `wait`: waits for a signal.

use switchyard_core::NodeError;
use switchyard_core::run::{SignalTimeout, WaitFor};
use switchyard_lang::program::CompiledWait;
use switchyard_lang::spec::WaitTimeout;

use super::Call;

const SIGNAL_BYTES_MAX: usize = 256;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledWait) -> Result<WaitFor, NodeError> {
    Ok(WaitFor::Signal {
        name: call.short_text("signal", &spec.signal, SIGNAL_BYTES_MAX).await?,
        timeout_at: call.node.timeout.map(|timeout| call.services.clock.now().plus(timeout)),
        on_timeout: match spec.on_timeout {
            WaitTimeout::Fail => SignalTimeout::Fail,
            WaitTimeout::Continue => SignalTimeout::Continue,
        },
    })
}
