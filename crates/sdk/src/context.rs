//! Which call of a handler this is.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_core::RunId;
use switchyard_core::run::LogLevel;
use switchyard_runtime::{ClaimError, HandlerContext};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::HandlerError;

#[cfg(test)]
mod tests;

/// Given to a handler with its input: which run, which node, which attempt.
///
/// When the run is cancelled, the handler's future is dropped at the `.await` where it stands, unless it has asked
/// about that ([`Context::cancelled`], [`Context::is_cancelled`], [`Context::cancellation`]): then it has a grace in
/// which to come to an end of its own. When the node's `timeout` is over it is dropped without one. What has to be
/// cleaned up in any case belongs in a [`Drop`].
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
    /// key on to the system that must not see the effect twice.
    pub fn idempotency_key(&self) -> &str {
        &self.call.idempotency_key
    }

    /// What an earlier call for this node has kept with [`Context::save_checkpoint`]: an attempt that failed, or one
    /// whose process died.
    ///
    /// It goes with the node: what has succeeded, or failed for good, starts from nothing if its run is retried.
    pub fn checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, HandlerError> {
        let Some(kept) = &self.call.checkpoint else { return Ok(None) };
        serde_json::from_value(kept.clone()).map(Some).map_err(|error| {
            HandlerError::permanent("checkpoint", format!("the checkpoint is of another type: {error}"))
        })
    }

    /// Keeps how far the work is, instead of what was kept before. When this returns, it survives everything.
    ///
    /// Each is an event in the run's history, so keep one where repeating the work would hurt, and not in every
    /// turn of a loop.
    pub async fn save_checkpoint(&self, value: impl Serialize) -> Result<(), HandlerError> {
        let value = serde_json::to_value(value)?;
        self.call.keep(&value).await.map_err(said)
    }

    /// Shows a piece of output to followers of the run, such as the tokens of a language model as they come.
    ///
    /// Chunks stay in the history, in order; those that come together share an event (`node_chunks`). One has at
    /// most 4,096 bytes as JSON, and an attempt at most 100,000 of them. Nothing but followers reads them: what the
    /// workflow goes on with is what the handler returns.
    pub async fn stream(&self, chunk: impl Serialize) -> Result<(), HandlerError> {
        let chunk = serde_json::to_value(chunk)?;
        self.call.stream(chunk).await.map_err(said)
    }

    /// Says that the work goes on, and is an error if it no longer counts.
    ///
    /// Workers say so by themselves as long as their process lives. This is for handlers that want to know at once,
    /// before something expensive.
    pub async fn heartbeat(&self) -> Result<(), HandlerError> {
        self.call.heartbeat().await.map_err(said)
    }

    /// Whether the run was cancelled, or the node given to another worker: its result will not count.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancellation.listen().is_cancelled()
    }

    /// Returns when [`Context::is_cancelled`].
    pub async fn cancelled(&self) {
        self.call.cancellation.listen().cancelled().await;
    }

    /// The same as a token to hand on.
    pub fn cancellation(&self) -> CancellationToken {
        self.call.cancellation.listen().clone()
    }

    /// Logs a message of the level `info`: it is kept with the run (`switchyard runs logs`), and goes through [`tracing`]
    /// with the handler, run, node and attempt beside it.
    ///
    /// It is durable at the latest when the handler's result is. An attempt keeps 2,000 lines and 256 KiB; what is beyond
    /// that is dropped.
    pub fn log(&self, message: impl Display) {
        self.log_at(LogLevel::Info, message);
    }

    /// The same with another level.
    pub fn log_at(&self, level: LogLevel, message: impl Display) {
        let message = message.to_string();
        self.call.log(level, &message);
        self.span.in_scope(|| match level {
            LogLevel::Debug => tracing::debug!("{message}"),
            LogLevel::Info => tracing::info!("{message}"),
            LogLevel::Warn => tracing::warn!("{message}"),
            LogLevel::Error => tracing::error!("{message}"),
        });
    }

    /// The span with those fields, for [`tracing::Instrument`].
    pub fn span(&self) -> &Span {
        &self.span
    }
}

/// A store that does not answer is no fault of the node: the attempt is made again.
fn said(error: ClaimError) -> HandlerError {
    match error {
        ClaimError::Lost => HandlerError::retryable("claim_lost", error),
        ClaimError::Refused(_) => HandlerError::permanent("refused", error),
        ClaimError::Unavailable(_) => HandlerError::store_unavailable(&error),
    }
}
