//! The claim behind a call, and the reports that a handler can make about it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use switchyard_core::run::LogLine;
use tokio_util::sync::CancellationToken;

/// Sends reports about a claim to its source: the store of this process, or a server.
#[async_trait]
pub trait HeldClaim: Send + Sync {
    /// Stores a checkpoint, replacing the earlier one. Durable at return.
    async fn checkpoint(&self, value: &Value) -> Result<(), ClaimError>;

    /// Stores partial output, in order. Durable at return.
    async fn chunks(&self, chunks: Vec<Value>) -> Result<(), ClaimError>;

    /// Stores log lines, in order. Durable at return; lines beyond the limits of an attempt are dropped.
    async fn logs(&self, lines: Vec<LogLine>) -> Result<(), ClaimError>;

    /// Reports that the work continues, and returns whether it should.
    async fn heartbeat(&self) -> Result<Beat, ClaimError>;
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    GoOn,
    /// The run is being closed.
    Stop,
}

/// Why a report about a claim failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("the claim does not count any more: the node was given to another worker, or its run has ended")]
    Lost,
    #[error("{0}")]
    Refused(String),
    #[error("the store does not answer: {0}")]
    Unavailable(String),
}

/// A request to stop, and whether the handler observes it.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    token: CancellationToken,
    listened_to: Arc<AtomicBool>,
}

impl Cancellation {
    /// Asks the handler to stop.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Resolves when a stop was requested. For the worker, which does not count as a listener.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// Whether the handler has ever observed the request. A handler that has not is dropped at once when it should
    /// stop.
    pub fn is_listened_to(&self) -> bool {
        self.listened_to.load(Ordering::Relaxed)
    }

    /// The token for the handler; marks the request as observed.
    pub fn listen(&self) -> &CancellationToken {
        self.listened_to.store(true, Ordering::Relaxed);
        &self.token
    }
}

/// The end of work that can be asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped<T> {
    /// The work ended without a request to stop.
    Ended(T),
    /// The work was asked to stop, and ended by itself.
    WhenAsked(T),
    /// The work was asked to stop, and was dropped because it did not listen or took too long.
    Dropped,
}

impl Cancellation {
    /// Runs work until it ends, or for `grace` after a request to stop. Work that does not listen gets no grace
    /// period: it is dropped at its current await.
    pub async fn carry<T>(&self, work: impl Future<Output = T>, grace: Duration) -> Stopped<T> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            answer = &mut work => return Stopped::Ended(answer),
            () = self.requested() => {}
        }
        if !self.is_listened_to() {
            return Stopped::Dropped;
        }
        match tokio::time::timeout(grace, work).await {
            Ok(answer) => Stopped::WhenAsked(answer),
            Err(_) => Stopped::Dropped,
        }
    }
}
