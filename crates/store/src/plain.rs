//! Plain workers: programs that use the hot store directly, without a Switchyard library. They take tasks from its
//! queues and send signals about the outcomes. A duty turns the signals into settlements.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::RunId;
use switchyard_core::run::{ClaimRef, Settled, Task, TaskOutcome};

use crate::StoreError;

/// The largest size of a signal in bytes, equal to the API's default limit for a request. A larger output belongs
/// into the CAS (`result_ref`).
pub const SIGNAL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The prefix that replaces a signal that is too large. The number of its bytes, a colon and its beginning follow.
pub const OVERSIZED: &str = "oversized:";

/// The original size in bytes of a signal that was cut off; `None` if it was not.
pub fn oversized(signal: &str) -> Option<usize> {
    signal.strip_prefix(OVERSIZED)?.split_once(':')?.0.parse().ok()
}

/// The subject of a signal: a node and, if the worker names it, the delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub run: RunId,
    pub node: Arc<str>,
    /// The queue entry that the worker took.
    pub delivery: Option<String>,
    /// The name that the worker gives itself.
    pub worker: Arc<str>,
}

/// The state of the node that a signal is about.
#[derive(Clone, Debug)]
pub enum Found {
    /// A worker that took the node from its queue can claim it.
    Ready(Box<Offer>),
    /// A worker has claimed the node with this delivery.
    Held {
        claim: u32,
        delivery: Option<String>,
    },
    /// The node cannot be claimed: it has ended, it waits, or its run is paused. Or this delivery of the node is
    /// outdated.
    Passed,
    UnknownNode,
    /// The run is not in flight.
    NotHere,
}

/// A node that can be claimed, as long as its run has not changed.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The task as it will be once it is claimed.
    pub task: Task,
    /// The priority that the run was submitted with.
    pub priority: Option<u8>,
    pub seq: u64,
}

/// The side of a hot store that plain workers use. Any number of processes may call it at once.
#[async_trait]
pub trait PlainWorkers: Send + Sync + 'static {
    /// Takes some signals, together not much more than [`SIGNAL_BYTES_MAX`]. A larger single signal is cut off to its
    /// beginning ([`oversized`]). This process owns the signals until it settles or drops them; if it goes silent
    /// before that, another process takes them over.
    async fn take_signals(&self) -> Result<Vec<String>, StoreError>;

    /// Returns when there may be signals to take, or after a while.
    async fn signals_ready(&self);

    async fn find_node(&self, about: &About) -> Result<Found, StoreError>;

    /// Claims the node for the worker, sends the worker its task, and drops the signal, atomically. Does nothing if
    /// the run has changed since the offer. Returns whether it claimed the node.
    async fn claim_offer(
        &self,
        signal: &str,
        about: &About,
        offer: &Offer,
        lease: Duration,
        answer: &str,
    ) -> Result<bool, StoreError>;

    /// Claims the node for the worker, settles that claim, and drops the signal, atomically. Does nothing if the run
    /// has changed since the offer. Returns whether it settled the claim.
    async fn settle_offer(
        &self,
        signal: &str,
        about: &About,
        offer: &Offer,
        outcome: &TaskOutcome,
    ) -> Result<bool, StoreError>;

    /// Settles a claim. If the claim is valid, the signal is dropped with it.
    async fn settle_claim(
        &self,
        signal: &str,
        claim: ClaimRef,
        outcome: TaskOutcome,
    ) -> Result<Settled, StoreError>;

    /// Answers a worker that asked for a task and does not get it.
    async fn answer(&self, about: &About, answer: &str) -> Result<(), StoreError>;

    /// Drops a signal that needs no further work.
    async fn drop_signal(&self, signal: &str) -> Result<(), StoreError>;

    /// One pass over tasks that workers took and neither claimed nor settled: tasks held for longer than `silence`
    /// are queued again, which counts as a delivery. Returns how many.
    async fn take_back(&self, silence: Duration) -> Result<usize, StoreError>;
}
