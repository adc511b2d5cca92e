//! The hot store: the trait for runs in flight.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use switchyard_core::in_flight::{Acceptance, ClaimStatus, Command, NewRun};
use switchyard_core::ir::Ir;
use switchyard_core::run::{ClaimRef, Operation, Progress, Run, Settled, Settlement, Task};
use switchyard_core::{ApprovalId, Hash, RunId, Timestamp};
use tokio::sync::watch;

use crate::{StoreError, Unfinished, Worker};

pub use switchyard_core::in_flight::{BandDepth, PRIORITIES, QueueDepth, Want};

/// The newest durable change of a run, for its followers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The seq of the run's newest event.
    pub seq: u64,
    pub ended: bool,
}

/// Storage for in-flight state. Once a method has answered, its effect survives the loss of this process.
///
/// The store supplies the time: an embedded store uses the injected clock, a distributed store its server's clock.
#[async_trait]
pub trait HotStore: Send + Sync + 'static {
    /// Registers a graph, so that runs can be accepted on it.
    async fn learn(&self, ir: Arc<Ir>) -> Result<(), StoreError>;

    /// Stores the text of a definition for a while, so that workers can read it when the archive is unavailable.
    async fn keep_definition(&self, _hash: Hash, _canonical: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// The text of a definition that [`HotStore::keep_definition`] stored, if it is still there.
    async fn kept_definition(&self, _hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        Ok(None)
    }

    /// Accepts a run.
    async fn accept(&self, run: NewRun) -> Result<Acceptance, StoreError>;

    /// Settles claims, releases the nodes that depended on them, and claims the next tasks: the one call of the hot
    /// path. The answers are in the order of the settlements.
    async fn step(
        &self,
        settlements: Vec<Settlement>,
        want: &Want,
    ) -> Result<(Vec<Settled>, Vec<Task>), StoreError>;

    /// Returns when there may be something to claim; early is allowed, late is not.
    async fn work_ready(&self, want: &Want);

    /// The task of a valid claim, as it was handed to the holder, but without the time at which it was queued.
    async fn held_task(&self, claim: &ClaimRef) -> Result<Option<Task>, StoreError>;

    /// Extends the leases of claims and reports which of them are still valid. The time limit of an attempt is not
    /// extended.
    async fn heartbeat(
        &self,
        claims: &[ClaimRef],
        lease: Option<Duration>,
    ) -> Result<Vec<ClaimStatus>, StoreError>;

    /// Records a checkpoint or partial output from the holder of a claim. If the claim is not valid, nothing changes
    /// and the answer says so.
    async fn progress(&self, claim: &ClaimRef, progress: Progress) -> Result<Settled, StoreError>;

    /// Executes a command on a run in flight, once for each operation id. When this returns, the command's events are
    /// in the archive. A repeated operation id gets the first answer, even if the run has changed since; the same id
    /// with another command is refused. Refused commands are not remembered.
    async fn command(&self, run: RunId, operation: Operation, command: Command) -> Result<(), StoreError>;

    /// The run that waits for this approval.
    async fn run_of_approval(&self, approval: &ApprovalId) -> Result<Option<RunId>, StoreError>;

    /// Restores runs from their histories: at start, after the loss of the store, or for a retry. Claims that were
    /// held become invalid. A run that is in the store already is not changed.
    async fn restore(&self, runs: Vec<Run>) -> Result<(), StoreError>;

    /// Compares the store with the archive's unfinished runs. Removes runs that have ended in the archive, and tells
    /// parents about ended children that they missed. Returns the runs that must be rebuilt from the archive: those
    /// that the store lacks, and those whose state is older than the archive. The store never answers with state that
    /// is newer than such a rebuild produces (I12).
    async fn compare(&self, unfinished: &[Unfinished]) -> Result<Vec<RunId>, StoreError>;

    /// Whether this process runs a shared duty now. Among all processes that share the store, one runs it once in
    /// `every`.
    async fn takes_turn(&self, duty: &str, every: Duration) -> Result<bool, StoreError>;

    /// Returns when the archive has the events of every earlier answer.
    async fn archived(&self) -> Result<(), StoreError>;

    /// One pass of the timer duty: fires the timers that are due. Returns how many fired, and when the next is due.
    async fn fire_timers(&self) -> Result<(usize, Option<Timestamp>), StoreError>;

    /// Returns when the next timer may have changed.
    async fn timers_changed(&self);

    /// One pass of the reclaim duty: takes back claims whose lease ran out, and fails attempts that exceeded their
    /// time limit. Returns the number of both together.
    async fn reclaim(&self) -> Result<usize, StoreError>;

    /// Whether a run is in flight. If it is not, its end is in the archive by the time of the answer.
    async fn in_flight(&self, run: RunId) -> Result<bool, StoreError>;

    /// The state of a run in flight, as durable as every other answer.
    async fn snapshot(&self, run: RunId) -> Result<Option<Run>, StoreError>;

    /// Subscribes to a run. The receiver holds the newest change since the run's first follower. The sender is
    /// dropped when the store can no longer write.
    fn follow(&self, run: RunId) -> watch::Receiver<Change>;

    /// The known queues, by name, with their depths.
    async fn queues(&self) -> Result<Vec<QueueDepth>, StoreError>;

    /// Records that a worker is alive, and which queues it serves. The report is valid for `holds`. The store sets
    /// `last_seen` and `alive`.
    async fn report_worker(&self, worker: &Worker, holds: Duration) -> Result<(), StoreError>;

    /// Removes a worker that has left from the list.
    async fn sign_off(&self, worker: &str) -> Result<(), StoreError>;

    /// Workers that reported within the last day, ordered by name.
    async fn workers(&self) -> Result<Vec<Worker>, StoreError>;

    /// Whether this queue is for plain workers ([`crate::plain`]). No other worker can claim its tasks by the name of
    /// their function.
    fn is_plain(&self, _queue: &str) -> bool {
        false
    }

    /// Sends a signal again, as a plain worker does (see [`crate::plain`]).
    async fn signal_again(&self, _signal: &str) -> Result<(), StoreError> {
        Err(StoreError::unavailable("signals of plain workers are taken in Redis, and there is none here"))
    }

    async fn size(&self) -> Result<Size, StoreError>;

    /// The changes that were answered but are not in the archive yet; `None` if the store archives before it answers.
    async fn unarchived(&self) -> Result<Option<Unarchived>, StoreError> {
        Ok(None)
    }

    /// Succeeds if the store accepts changes.
    async fn ready(&self) -> Result<(), StoreError>;
}

/// How far the archive lags behind the hot store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unarchived {
    /// The number of changes; each has one event or a few.
    pub changes: usize,
    /// How long the oldest change has waited.
    pub oldest: Duration,
    /// Why the oldest change waits longer than it should, if it does.
    pub stuck: Option<Arc<str>>,
}

/// The number of runs and timers in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    pub runs: usize,
    pub timers: usize,
}
