//! Handlers of this program, working for a server.

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
/// A server that is away is waited for. Tasks are kept alive by heartbeats; a task whose lease ran out all the same,
/// because this process was cut off, is another worker's, and what its handler still gives does not count.
///
/// Leave it with [`Worker::shut_down`]. One that is dropped stops at once, and its tasks are done again by others when
/// their leases run out.
#[derive(Debug)]
pub struct Worker {
    /// No further claim.
    stop: CancellationToken,
    /// Give back what is held.
    hand_back: CancellationToken,
    /// Ends when every task has.
    working: JoinHandle<()>,
    grace: Duration,
}

impl Worker {
    /// A worker for the server at this address, not started yet.
    pub fn connect(url: &str) -> WorkerBuilder {
        WorkerBuilder::new(url)
    }

    /// Stops in order: no further task is claimed, handlers may finish for the grace, the rest is handed back.
    pub async fn shut_down(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(self.grace, &mut self.working).await.is_err() {
            self.hand_back.cancel();
            // It only fails to be joined if it panicked, and then there is nothing left to wait for.
            let _ = (&mut self.working).await;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.working.abort();
    }
}
