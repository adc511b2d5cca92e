//! Streamed output of handlers, batched while the store is busy, so that many chunks share an event.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use switchyard_core::payload::INLINE_BYTES_MAX;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::claim::{ClaimError, HeldClaim};

/// The largest chunk, as JSON: chunks are stored in the history itself.
pub const CHUNK_BYTES_MAX: usize = INLINE_BYTES_MAX;

/// The most chunks and bytes of one event.
const BATCH_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// The shortest time between two events: people do not notice it, and histories stay short.
const PACE: Duration = Duration::from_millis(20);

/// The most chunks that wait to be sent. A handler that streams faster than the store writes is slowed down.
const WAITING_MAX: usize = 1_024;

/// The chunks of one call. Its task starts at the first chunk, because most handlers stream none.
pub(super) struct ChunkStream {
    claim: Arc<dyn HeldClaim>,
    started: OnceLock<Started>,
}

struct Started {
    sender: mpsc::Sender<(Value, usize)>,
    failed: Arc<OnceLock<ClaimError>>,
    end: CancellationToken,
    /// The sending task, which is aborted on drop.
    sending: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl ChunkStream {
    pub(super) fn new(claim: Arc<dyn HeldClaim>) -> Self {
        Self { claim, started: OnceLock::new() }
    }

    pub(super) async fn push(&self, chunk: Value) -> Result<(), ClaimError> {
        let bytes = chunk.to_string().len();
        if bytes > CHUNK_BYTES_MAX {
            let why = format!("a chunk has {bytes} bytes, more than the {CHUNK_BYTES_MAX} it may have");
            return Err(ClaimError::Refused(why));
        }
        let started = self.started.get_or_init(|| Started::new(self.claim.clone()));
        // The channel is closed after a failure, and once the call has ended: later chunks are not part of the call.
        let sent = started.sender.send((chunk, bytes)).await;
        sent.map_err(|_| started.failed.get().cloned().unwrap_or(ClaimError::Lost))
    }

    /// Ends the stream. Returns when the chunks are stored, or when storing failed.
    pub(super) async fn end(&self) {
        let Some(started) = self.started.get() else { return };
        started.end.cancel();
        let sending = started.sending.lock().take();
        if let Some(sending) = sending {
            // Joining fails only if the task panicked; a lost chunk is no reason to lose the result.
            let _ = sending.await;
        }
    }
}

impl Started {
    fn new(claim: Arc<dyn HeldClaim>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let (failed, end) = (Arc::new(OnceLock::new()), CancellationToken::new());
        let sending = tokio::spawn(send(receiver, claim, failed.clone(), end.clone()));
        Self { sender, failed, end, sending: Mutex::new(Some(AbortOnDropHandle::new(sending))) }
    }
}

async fn send(
    mut receiver: mpsc::Receiver<(Value, usize)>,
    claim: Arc<dyn HeldClaim>,
    failed: Arc<OnceLock<ClaimError>>,
    end: CancellationToken,
) {
    loop {
        let first = tokio::select! {
            first = receiver.recv() => first,
            () = end.cancelled() => {
                receiver.close();
                receiver.recv().await
            }
        };
        let Some(first) = first else { return };
        let batch = gather(first, &mut receiver);
        if let Err(error) = claim.chunks(batch).await {
            tracing::warn!(%error, "streamed output was not kept");
            let _ = failed.set(error);
            receiver.close();
            return;
        }
        let _ = tokio::time::timeout(PACE, end.cancelled()).await;
    }
}

fn gather(first: (Value, usize), receiver: &mut mpsc::Receiver<(Value, usize)>) -> Vec<Value> {
    let mut bytes = first.1;
    let mut batch = vec![first.0];
    while batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
        let Ok((chunk, more)) = receiver.try_recv() else { break };
        bytes += more;
        batch.push(chunk);
    }
    batch
}
