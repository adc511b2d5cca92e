//! The claim behind a call: what a handler can say about it while it works.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use switchyard_core::run::LogLine;
use tokio_util::sync::CancellationToken;

/// Reports about a claim to its source: the store of this process, or a server.
#[async_trait]
pub trait HeldClaim: Send + Sync {
    /// Keeps how far the node is, instead of what was kept before. Durable at return.
    async fn checkpoint(&self, value: &Value) -> Result<(), ClaimError>;

    /// Output as it comes, in order. Durable at return.
    async fn chunks(&self, chunks: Vec<Value>) -> Result<(), ClaimError>;

    /// Lines that were logged, in order. Durable at return, or dropped where they are beyond the bounds of an attempt.
    async fn logs(&self, lines: Vec<LogLine>) -> Result<(), ClaimError>;

    /// Says that the work goes on, and hears whether it should.
    async fn heartbeat(&self) -> Result<Beat, ClaimError>;
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    GoOn,
    /// The run is being closed.
    Stop,
}

/// Why something could not be said about a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("the claim does not count any more: the node was given to another worker, or its run has ended")]
    Lost,
    #[error("{0}")]
    Refused(String),
    #[error("the store does not answer: {0}")]
    Unavailable(String),
}

/// A request to stop, and whether the handler listens to it.
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

    /// Resolves when it was asked for; for the worker, which does not count as a listener.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// Whether the handler has ever asked about it. One that has not is dropped at once when it should stop.
    pub fn is_listened_to(&self) -> bool {
        self.listened_to.load(Ordering::Relaxed)
    }

    /// For the handler.
    pub fn listen(&self) -> &CancellationToken {
        self.listened_to.store(true, Ordering::Relaxed);
        &self.token
    }
}

/// How work ended that may be asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped<T> {
    /// No request to stop.
    Ended(T),
    /// It was asked, and came to an end of its own.
    WhenAsked(T),
    /// It was asked, and did not listen or took too long.
    Dropped,
}

impl Cancellation {
    /// Carries work on until it ends, or for `grace` after it was asked to stop. Work that does not listen has none:
    /// it is dropped where it awaits.
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
