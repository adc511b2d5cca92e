//! Which call of a handler this is.

use std::fmt::Display;

use switchyard_core::RunId;
use switchyard_runtime::HandlerContext;
use tracing::Span;

#[cfg(test)]
mod tests;

/// Given to a handler with its input: which run, which node, which attempt.
///
/// There is no request to stop in it. When the run is cancelled, or the node's `timeout` is over, the handler's
/// future is dropped at the `.await` where it stands: what has to be cleaned up then belongs in a [`Drop`].
#[derive(Clone, Debug)]
pub struct Context {
    call: HandlerContext,
    span: Span,
}

impl Context {
    pub(crate) fn new(call: HandlerContext, handler: &str) -> Self {
        let span = tracing::info_span!(
            "handler",
            handler,
            run = %call.run,
            node = %call.node,
            attempt = call.attempt
        );
        Self { call, span }
    }

    /// The run that this call is part of.
    pub fn run_id(&self) -> RunId {
        self.call.run
    }

    /// The id of the node in its workflow.
    pub fn node(&self) -> &str {
        &self.call.node
    }

    /// Counted from 1. A call that is made again because its process died has the same number as before.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// The same for every attempt of this node in this run, and for no other.
    ///
    /// A handler can run twice: the process can die after its effect and before its result was recorded. Pass this
    /// key on to whoever must not see the effect twice.
    pub fn idempotency_key(&self) -> &str {
        &self.call.idempotency_key
    }

    /// Logs a line with the handler, run, node and attempt beside it, through [`tracing`].
    ///
    /// Inside the handler's own future the macros of `tracing` carry the same fields. This is for everywhere else,
    /// such as a task that the handler spawned.
    pub fn log(&self, message: impl Display) {
        self.span.in_scope(|| tracing::info!("{message}"));
    }

    /// The span with those fields, for [`tracing::Instrument`].
    pub fn span(&self) -> &Span {
        &self.span
    }
}
