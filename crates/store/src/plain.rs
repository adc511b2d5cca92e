//! Workers that use the hot store by themselves, with nothing of ours between: they take tasks from its queues, and
//! leave signals about what became of them. A duty turns the signals into settlements.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::RunId;
use switchyard_core::run::{ClaimRef, Settled, Task, TaskOutcome};

use crate::StoreError;

/// The most bytes that a signal may have: as many as a request to the API by default. A larger output belongs into the
/// CAS (`result_ref`).
pub const SIGNAL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What stands in a list instead of a signal that is too large: this, its number of bytes, a colon, and its beginning.
pub const OVERSIZED: &str = "oversized:";

/// How many bytes a signal had before it was cut off because of them.
pub fn oversized(signal: &str) -> Option<usize> {
    signal.strip_prefix(OVERSIZED)?.split_once(':')?.0.parse().ok()
}

/// What a signal is about: a node, and which delivery of it, if the worker says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub run: RunId,
    pub node: Arc<str>,
    /// The entry of the queue that the worker took.
    pub delivery: Option<String>,
    /// What the worker calls itself.
    pub worker: Arc<str>,
}

/// A node that a signal is about, as it stands.
#[derive(Clone, Debug)]
pub enum Found {
    /// A worker that took it from its queue can claim it.
    Ready(Box<Offer>),
    /// A worker has claimed it with this delivery.
    Held {
        claim: u32,
        delivery: Option<String>,
    },
    /// It is past that: ended, waiting, not to be had while its run is paused. Or this delivery of it is.
    Passed,
    UnknownNode,
    /// The run is not under way.
    NotHere,
}

/// A node that can be claimed, as long as its run has not changed.
#[derive(Clone, Debug)]
pub struct Offer {
    /// As it will be, once it is claimed.
    pub task: Task,
    /// That its run was submitted with.
    pub priority: Option<u8>,
    pub seq: u64,
}

/// The side of a hot store that plain workers use. Any number of processes may call it at once.
#[async_trait]
pub trait PlainWorkers: Send + Sync + 'static {
    /// Takes some signals, together not much more than [`SIGNAL_BYTES_MAX`]. Of one that has more by itself only the
    /// beginning is left ([`oversized`]). They stay this process's until they are settled or dropped; if it goes silent before that,
    /// another process takes them over.
    async fn take_signals(&self) -> Result<Vec<String>, StoreError>;

    /// Returns when there may be signals to take, or after a while.
    async fn signals_ready(&self);

    async fn find_node(&self, about: &About) -> Result<Found, StoreError>;

    /// Claims the node for the worker, tells it what to do, and drops the signal: all of it, or nothing if the run
    /// has changed since the offer. Whether it did.
    async fn claim_offer(
        &self,
        signal: &str,
        about: &About,
        offer: &Offer,
        lease: Duration,
        answer: &str,
    ) -> Result<bool, StoreError>;

    /// Claims the node for the worker, settles that claim, and drops the signal: all of it, or nothing if the run has
    /// changed since the offer. Whether it did.
    async fn settle_offer(
        &self,
        signal: &str,
        about: &About,
        offer: &Offer,
        outcome: &TaskOutcome,
    ) -> Result<bool, StoreError>;

    /// Settles a claim, and drops the signal with that if it counts.
    async fn settle_claim(
        &self,
        signal: &str,
        claim: ClaimRef,
        outcome: TaskOutcome,
    ) -> Result<Settled, StoreError>;

    /// Answers a worker that asked for a task and is not to have it.
    async fn answer(&self, about: &About, answer: &str) -> Result<(), StoreError>;

    /// There is nothing more to be done about a signal.
    async fn drop_signal(&self, signal: &str) -> Result<(), StoreError>;

    /// One pass over what workers took and neither claimed nor settled: what they have kept for longer than `silence`
    /// is queued again, and counts as a delivery. How many.
    async fn take_back(&self, silence: Duration) -> Result<usize, StoreError>;
}
