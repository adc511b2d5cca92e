//! What is in flight.

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

/// The newest of a run that is durable, for those who follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Of its newest event.
    pub seq: u64,
    pub ended: bool,
}

/// Where in-flight state lives. What a method has answered survives the loss of this process.
///
/// Time is the store's own: an embedded store asks the clock it was given, a distributed one its server.
#[async_trait]
pub trait HotStore: Send + Sync + 'static {
    /// Makes a graph known, so that runs can be accepted on it.
    async fn learn(&self, ir: Arc<Ir>) -> Result<(), StoreError>;

    /// Keeps the text of a definition for a while, where those who execute its steps find it when the archive is away.
    async fn keep_definition(&self, _hash: Hash, _canonical: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// The text, if it is still kept.
    async fn kept_definition(&self, _hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        Ok(None)
    }

    /// Takes a run in.
    async fn accept(&self, run: NewRun) -> Result<Acceptance, StoreError>;

    /// The one call of the hot path: settles claims, releases what depended on them, claims what is next.
    /// The answers to the settlements are in their order.
    async fn step(
        &self,
        settlements: Vec<Settlement>,
        want: &Want,
    ) -> Result<(Vec<Settled>, Vec<Task>), StoreError>;

    /// Returns when there may be something to claim; early is allowed, late is not.
    async fn work_ready(&self, want: &Want);

    /// The task of a claim that counts, as its holder was handed it; since when it was queued is not known any more.
    async fn held_task(&self, claim: &ClaimRef) -> Result<Option<Task>, StoreError>;

    /// Extends the leases of claims, and tells which of them still count. The limit of an attempt stays where it is.
    async fn heartbeat(
        &self,
        claims: &[ClaimRef],
        lease: Option<Duration>,
    ) -> Result<Vec<ClaimStatus>, StoreError>;

    /// Records what the holder of a claim says about it: a checkpoint, or output as it comes. A claim that does not
    /// count (any more) changes nothing, and the answer says so.
    async fn progress(&self, claim: &ClaimRef, progress: Progress) -> Result<Settled, StoreError>;

    /// Carries out a command on a run that is under way, once for each operation id. When this returns, its events are
    /// in the archive. An id that the run knows is answered as the first time, also if the run has moved on; one that
    /// came with another command is refused. Commands that were refused are not remembered.
    async fn command(&self, run: RunId, operation: Operation, command: Command) -> Result<(), StoreError>;

    /// The run that waits for this approval.
    async fn run_of_approval(&self, approval: &ApprovalId) -> Result<Option<RunId>, StoreError>;

    /// Takes up runs from their histories: at start, after the loss of the store, for a retry.
    /// Claims that were held are void. A run that is here already is left as it is.
    async fn restore(&self, runs: Vec<Run>) -> Result<(), StoreError>;

    /// Compares what is here with what the archive says is unfinished. Lets go of runs that have ended there, tells
    /// parents about ends of children that they missed, and answers those that are not here, or only up to an earlier
    /// event than the archive has: they are to be rebuilt from there. Nothing that is answered here is ahead of what that rebuilds (I12).
    async fn compare(&self, unfinished: &[Unfinished]) -> Result<Vec<RunId>, StoreError>;

    /// Whether it is this process's turn with a duty that one process has for all who share the store, once in
    /// `every`.
    async fn takes_turn(&self, duty: &str, every: Duration) -> Result<bool, StoreError>;

    /// Returns when everything that was answered before is in the archive.
    async fn archived(&self) -> Result<(), StoreError>;

    /// One pass of the timer duty: fires what is due. How many fired, and when the next is due.
    async fn fire_timers(&self) -> Result<(usize, Option<Timestamp>), StoreError>;

    /// Returns when the next timer may have changed.
    async fn timers_changed(&self);

    /// One pass of the reclaim duty: takes back claims whose lease ran out, and fails attempts that took longer than
    /// their limit. How many of both.
    async fn reclaim(&self) -> Result<usize, StoreError>;

    /// Whether a run is under way. One that is not has its end in the archive by the time of the answer.
    async fn in_flight(&self, run: RunId) -> Result<bool, StoreError>;

    /// The state of a run that is under way, as durable as everything that is answered.
    async fn snapshot(&self, run: RunId) -> Result<Option<Run>, StoreError>;

    /// Follows a run: the receiver holds the newest change since the run has followers. Its sender goes away when
    /// the store can keep nothing any more.
    fn follow(&self, run: RunId) -> watch::Receiver<Change>;

    /// The queues that are known, by name, and how much there is of each.
    async fn queues(&self) -> Result<Vec<QueueDepth>, StoreError>;

    /// A worker says that it is alive, and what it serves. That holds for so long. `last_seen` and `alive` are the store's.
    async fn report_worker(&self, worker: &Worker, holds: Duration) -> Result<(), StoreError>;

    /// A worker that has left is not listed any more.
    async fn sign_off(&self, worker: &str) -> Result<(), StoreError>;

    /// Workers that were heard of within a day, in the order of their names.
    async fn workers(&self) -> Result<Vec<Worker>, StoreError>;

    /// Whether tasks of this queue are for plain workers ([`crate::plain`]): no other worker can claim them by the name
    /// of their function.
    fn is_plain(&self, _queue: &str) -> bool {
        false
    }

    /// Leaves a signal once more, as a plain worker does (see [`crate::plain`]).
    async fn signal_again(&self, _signal: &str) -> Result<(), StoreError> {
        Err(StoreError::unavailable("signals of plain workers are taken in Redis, and there is none here"))
    }

    async fn size(&self) -> Result<Size, StoreError>;

    /// What was answered and is not in the archive yet; none if nothing is answered before it is there.
    async fn unarchived(&self) -> Result<Option<Unarchived>, StoreError> {
        Ok(None)
    }

    /// Whether it takes changes.
    async fn ready(&self) -> Result<(), StoreError>;
}

/// How far the archive is behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unarchived {
    /// Each of one event or a few.
    pub changes: usize,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// Why it waits for longer than it should, if it does.
    pub stuck: Option<Arc<str>>,
}

/// How much is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    pub runs: usize,
    pub timers: usize,
}
