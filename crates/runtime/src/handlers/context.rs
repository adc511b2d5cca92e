//! The context of a handler's call.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use switchyard_core::RunId;
use switchyard_core::run::LogLevel;

use super::Handler;
use super::chunks::ChunkStream;
use super::claim::{Beat, Cancellation, ClaimError, HeldClaim};
use super::logs::LogStream;
use crate::AttemptError;

/// The context of a call: its identity, and the reports that the handler can make.
#[derive(Clone)]
#[non_exhaustive]
pub struct HandlerContext {
    pub run: RunId,
    pub node: Arc<str>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// `<run>/<node>`: the same for every attempt.
    pub idempotency_key: String,
    /// The checkpoint of an earlier call for this node.
    pub checkpoint: Option<Value>,
    pub cancellation: Cancellation,
    claim: Arc<dyn HeldClaim>,
    chunks: Arc<ChunkStream>,
    logs: Arc<LogStream>,
}

impl fmt::Debug for HandlerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerContext")
            .field("run", &self.run)
            .field("node", &self.node)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// The parts of a handler's call.
pub struct HandlerCall {
    pub run: RunId,
    pub node: Arc<str>,
    pub attempt: u32,
    pub input: Value,
    pub checkpoint: Option<Value>,
    pub cancellation: Cancellation,
    pub claim: Arc<dyn HeldClaim>,
    /// The log of the call. The caller ends it, also if the call is dropped.
    pub logs: Arc<LogStream>,
}

impl fmt::Debug for HandlerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerCall")
            .field("run", &self.run)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl HandlerCall {
    /// Calls the handler. Its streamed chunks are stored before its result is returned.
    pub async fn make(self, handler: &dyn Handler) -> Result<Value, AttemptError> {
        let (context, input) = self.begin();
        let chunks = context.chunks.clone();
        let answer = handler.call(input, context).await;
        chunks.end().await;
        answer
    }

    fn begin(self) -> (HandlerContext, Value) {
        let chunks = Arc::new(ChunkStream::new(self.claim.clone()));
        let context = HandlerContext {
            idempotency_key: idempotency_key(self.run, &self.node),
            run: self.run,
            node: self.node,
            attempt: self.attempt,
            checkpoint: self.checkpoint,
            cancellation: self.cancellation,
            claim: self.claim,
            chunks,
            logs: self.logs,
        };
        (context, self.input)
    }
}

/// `<run>/<node>`: the same for every attempt.
pub fn idempotency_key(run: RunId, node: &str) -> String {
    format!("{run}/{node}")
}

impl HandlerContext {
    /// Stores a checkpoint, replacing the earlier one. Durable at return.
    pub async fn keep(&self, value: &Value) -> Result<(), ClaimError> {
        self.heard(self.claim.checkpoint(value).await)
    }

    /// Streams a chunk of output to followers of the run. It becomes durable soon after, in order, not yet at return.
    pub async fn stream(&self, chunk: Value) -> Result<(), ClaimError> {
        self.heard(self.chunks.push(chunk).await)
    }

    /// Logs a message, line by line. The lines become durable soon, in order, at the latest with the result of the
    /// call; lines beyond the limits of an attempt are dropped.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.logs.push(Some(level), message);
    }

    /// Reports that the work continues. Workers do so by themselves as long as the process lives; call this to find
    /// out at once whether the claim is still valid.
    pub async fn heartbeat(&self) -> Result<(), ClaimError> {
        let beat = self.heard(self.claim.heartbeat().await)?;
        if beat == Beat::Stop {
            self.cancellation.request();
        }
        Ok(())
    }

    /// Requests a stop if the claim is lost.
    fn heard<T>(&self, answer: Result<T, ClaimError>) -> Result<T, ClaimError> {
        if matches!(answer, Err(ClaimError::Lost)) {
            self.cancellation.request();
        }
        answer
    }
}
