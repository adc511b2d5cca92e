//! A claim in the store of this process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use switchyard_core::Payload;
use switchyard_core::in_flight::ClaimStatus;
use switchyard_core::run::{ClaimRef, LogLine, Progress, Settled};
use switchyard_store::{Clock, HotStore, StoreError};

use crate::Payloads;
use crate::engine::keep_lines;
use crate::handlers::{Beat, Cancellation, ClaimError, HeldClaim, LogStream};
use crate::payloads::PayloadError;

/// The claim that a slot passes to the call of a node.
#[derive(Clone)]
pub struct Held {
    pub cancellation: Cancellation,
    pub claim: Arc<dyn HeldClaim>,
    /// The log of the handler or program.
    pub logs: Arc<LogStream>,
}

impl Held {
    pub(crate) fn new(cancellation: Cancellation, claim: Arc<dyn HeldClaim>, clock: Arc<dyn Clock>) -> Self {
        let logs = Arc::new(LogStream::new(claim.clone(), clock));
        Self { cancellation, claim, logs }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("cancellation", &self.cancellation).finish_non_exhaustive()
    }
}

pub(crate) struct LocalClaim {
    pub(crate) hot: Arc<dyn HotStore>,
    pub(crate) payloads: Payloads,
    pub(crate) claim: ClaimRef,
    pub(crate) lease: Option<Duration>,
}

#[async_trait]
impl HeldClaim for LocalClaim {
    async fn checkpoint(&self, value: &Value) -> Result<(), ClaimError> {
        let value = self.payloads.keep(value).await.map_err(not_kept)?;
        self.say(Progress::Checkpoint(value)).await
    }

    async fn chunks(&self, chunks: Vec<Value>) -> Result<(), ClaimError> {
        self.say(Progress::Chunks(chunks.iter().map(Payload::from_value).collect())).await
    }

    async fn logs(&self, lines: Vec<LogLine>) -> Result<(), ClaimError> {
        let logged = keep_lines(&self.payloads, &lines).await.map_err(not_kept)?;
        self.say(logged).await
    }

    async fn heartbeat(&self) -> Result<Beat, ClaimError> {
        let beats = self.hot.heartbeat(std::slice::from_ref(&self.claim), self.lease).await;
        match beats.map_err(|error| store_error(&error))?.first() {
            Some(ClaimStatus::Held) => Ok(Beat::GoOn),
            Some(ClaimStatus::Stop) => Ok(Beat::Stop),
            Some(ClaimStatus::Lost) | None => Err(ClaimError::Lost),
        }
    }
}

impl LocalClaim {
    async fn say(&self, progress: Progress) -> Result<(), ClaimError> {
        match self.hot.progress(&self.claim, progress).await {
            Ok(Settled::Applied) => Ok(()),
            Ok(Settled::Duplicate | Settled::Stale) => Err(ClaimError::Lost),
            Err(error) => Err(store_error(&error)),
        }
    }
}

fn not_kept(error: PayloadError) -> ClaimError {
    match error {
        PayloadError::Store(error) => store_error(&error),
        other => ClaimError::Refused(other.to_string()),
    }
}

fn store_error(error: &StoreError) -> ClaimError {
    match error {
        StoreError::Refused(refusal) => ClaimError::Refused(refusal.to_string()),
        other => ClaimError::Unavailable(other.to_string()),
    }
}
