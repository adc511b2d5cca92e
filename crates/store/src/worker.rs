//! Workers that take tasks of a hot store, with their last reports.

use std::sync::Arc;

use switchyard_core::Timestamp;
use switchyard_core::in_flight::takes;

/// How a worker reaches its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerKind {
    /// Slots of a Switchyard process.
    Process,
    /// The worker claims tasks over HTTP.
    Http,
    /// The worker reads Redis streams directly ([`crate::plain`]) and reports nothing: only its consumer is known.
    Plain,
}

/// A worker and the queues that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub name: Arc<str>,
    pub kind: WorkerKind,
    /// The queues that the worker takes tasks of, or patterns, as in [`crate::Want::queues`].
    pub queues: Arc<[Arc<str>]>,
    /// How many tasks the worker executes at once, if it reports that.
    pub slots: usize,
    /// How many tasks the worker holds, if it reports that.
    pub busy: usize,
    /// The version of the worker's program, if it reports that.
    pub version: Arc<str>,
    /// The time of the worker's first report.
    pub since: Timestamp,
    pub last_seen: Timestamp,
    /// Whether the worker's last report is still valid.
    pub alive: bool,
}

impl Worker {
    /// Whether the worker is alive and takes tasks of this queue.
    pub fn serves(&self, queue: &str) -> bool {
        self.alive && takes(&self.queues, queue)
    }
}
