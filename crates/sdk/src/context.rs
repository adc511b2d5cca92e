//! The context of a handler's call.

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

/// The context of a handler's call: the run, the node and the attempt.
///
/// When the run is cancelled, the worker drops the handler's future at its current `.await`, unless the handler listens
/// for cancellation ([`Context::cancelled`], [`Context::is_cancelled`], [`Context::cancellation`]): then it has a grace
/// period in which to return. When the node's `timeout` expires, the worker drops the future without a grace period.
/// Put clean-up that must always happen in a [`Drop`].
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

    /// The number of the attempt, from 1. A call that is repeated because its process died keeps its number.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// A key that is unique to this node in this run, and the same for all its attempts.
    ///
    /// A handler can run twice: the process can die after the handler's effect and before its result is recorded. Pass
    /// this key to the system that must not see the effect twice.
    pub fn idempotency_key(&self) -> &str {
        &self.call.idempotency_key
    }

    /// The checkpoint that an earlier call for this node saved with [`Context::save_checkpoint`]: an attempt that
    /// failed, or one whose process died.
    ///
    /// The checkpoint is removed when the node succeeds or fails for good; if the run is then retried, the node starts
    /// without one.
    pub fn checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, HandlerError> {
        let Some(kept) = &self.call.checkpoint else { return Ok(None) };
        serde_json::from_value(kept.clone()).map(Some).map_err(|error| {
            HandlerError::permanent("checkpoint", format!("the checkpoint is of another type: {error}"))
        })
    }

    /// Saves a checkpoint, which replaces the one before. When this returns, the checkpoint is durable.
    ///
    /// Each checkpoint is an event in the run's history, so save one where repeating the work would be expensive, and
    /// not in every iteration of a loop.
    pub async fn save_checkpoint(&self, value: impl Serialize) -> Result<(), HandlerError> {
        let value = serde_json::to_value(value)?;
        self.call.keep(&value).await.map_err(said)
    }

    /// Streams a chunk of output to followers of the run, such as the tokens of a language model.
    ///
    /// Chunks stay in the history, in order; chunks that arrive together share an event (`node_chunks`). A chunk has at
    /// most 4,096 bytes as JSON, and an attempt at most 100,000 chunks. Only followers read them: the workflow
    /// continues with the value that the handler returns.
    pub async fn stream(&self, chunk: impl Serialize) -> Result<(), HandlerError> {
        let chunk = serde_json::to_value(chunk)?;
        self.call.stream(chunk).await.map_err(said)
    }

    /// Sends a heartbeat, and returns an error if the claim is lost.
    ///
    /// Workers send heartbeats by themselves as long as their process lives. A handler calls this before an expensive
    /// step, to learn at once whether its result will still count.
    pub async fn heartbeat(&self) -> Result<(), HandlerError> {
        self.call.heartbeat().await.map_err(said)
    }

    /// Whether the run was cancelled, or another worker got the node: the handler's result will not count.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancellation.listen().is_cancelled()
    }

    /// Waits until [`Context::is_cancelled`] is true.
    pub async fn cancelled(&self) {
        self.call.cancellation.listen().cancelled().await;
    }

    /// A token that is cancelled when [`Context::is_cancelled`] becomes true, to pass to other code.
    pub fn cancellation(&self) -> CancellationToken {
        self.call.cancellation.listen().clone()
    }

    /// Logs a message at level `info`. The run stores it (`switchyard runs logs` shows it), and [`tracing`] gets it
    /// with the handler, run, node and attempt as fields.
    ///
    /// The line is durable at the latest when the handler's result is. An attempt stores up to 2,000 lines and 256 KiB;
    /// later lines are dropped.
    pub fn log(&self, message: impl Display) {
        self.log_at(LogLevel::Info, message);
    }

    /// Logs a message at the given level, as [`Context::log`] does.
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

    /// The span of this call, with the handler, run, node and attempt as fields, for [`tracing::Instrument`].
    pub fn span(&self) -> &Span {
        &self.span
    }
}

/// Converts the error of a claim. If the store does not answer, the attempt does not count and is repeated.
fn said(error: ClaimError) -> HandlerError {
    match error {
        ClaimError::Lost => HandlerError::retryable("claim_lost", error),
        ClaimError::Refused(_) => HandlerError::permanent("refused", error),
        ClaimError::Unavailable(_) => HandlerError::store_unavailable(&error),
    }
}
