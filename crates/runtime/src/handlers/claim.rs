//! The claim behind a call: what a handler can say about it while it works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Says things about a claim to whoever gave it: the store of this process, or a server.
#[async_trait]
pub trait HeldClaim: Send + Sync {
    /// Keeps how far the node is, instead of what was kept before. Durable at return.
    async fn checkpoint(&self, value: &Value) -> Result<(), ClaimError>;

    /// Output as it comes, in order. Durable at return.
    async fn chunks(&self, chunks: Vec<Value>) -> Result<(), ClaimError>;

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

/// A request to stop, and whether anybody listens to it.
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
