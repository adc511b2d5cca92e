//! Runs handlers of this program for a server.

mod builder;
mod claim;
mod claiming;
mod task;

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use builder::WorkerBuilder;

/// A worker: it claims `function` tasks of a server and calls handlers of this program for them.
///
/// ```no_run
/// use switchyard_sdk::{Context, HandlerError, Worker};
///
/// async fn summarise(text: String, cx: Context) -> Result<String, HandlerError> {
///     let mut summary = String::new();
///     for sentence in text.split('.').take(3) {
///         cx.stream(sentence).await?; // seen by followers of the run
///         summary.push_str(sentence);
///     }
///     Ok(summary)
/// }
///
/// # async fn example() -> Result<(), switchyard_sdk::Error> {
/// let worker = Worker::connect("http://127.0.0.1:7070").handler("summarise", summarise).start().await?;
/// // … until the program is to stop:
/// worker.shut_down().await;
/// # Ok(())
/// # }
/// ```
///
/// If the server does not answer, the worker waits for it. The worker keeps its tasks with heartbeats. If a lease still
/// expires, because this process was cut off, another worker gets the task, and this handler's result does not count.
///
/// Stop it with [`Worker::shut_down`]. A dropped worker stops at once, and other workers execute its tasks again when
/// the leases expire.
#[derive(Debug)]
pub struct Worker {
    /// Stops further claims.
    stop: CancellationToken,
    /// Makes all tasks stop and be released.
    hand_back: CancellationToken,
    /// Ends when all tasks have ended.
    working: JoinHandle<()>,
    grace: Duration,
}

impl Worker {
    /// Creates a builder for a worker of the server at this address.
    pub fn connect(url: &str) -> WorkerBuilder {
        WorkerBuilder::new(url)
    }

    /// Shuts down gracefully: claims no further task, lets handlers finish within the grace period, and releases the
    /// other tasks.
    pub async fn shut_down(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(self.grace, &mut self.working).await.is_err() {
            self.hand_back.cancel();
            // Joining fails only if the task panicked, and then there is nothing left to wait for.
            let _ = (&mut self.working).await;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.working.abort();
    }
}
