//! Workers that take tasks of a hot store, as each last reported.

use std::sync::Arc;

use switchyard_core::Timestamp;
use switchyard_core::in_flight::takes;

/// How a worker reaches its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerKind {
    /// Slots of a Switchyard process.
    Process,
    /// It claims over HTTP.
    Http,
    /// It reads streams of Redis by itself ([`crate::plain`]), and reports nothing: what is known of it is its consumer.
    Plain,
}

/// A worker and what it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub name: Arc<str>,
    pub kind: WorkerKind,
    /// Queues that it takes tasks of, or patterns, as in [`crate::Want::queues`].
    pub queues: Arc<[Arc<str>]>,
    /// Tasks that it executes at once, as far as it says so.
    pub slots: usize,
    /// Tasks that it holds, as far as it says so.
    pub busy: usize,
    /// Of its program, as far as it says so.
    pub version: Arc<str>,
    /// When it was first heard of.
    pub since: Timestamp,
    pub last_seen: Timestamp,
    /// Whether it has reported within the time that its last report holds for.
    pub alive: bool,
}

impl Worker {
    /// Whether it is alive and takes tasks of this queue.
    pub fn serves(&self, queue: &str) -> bool {
        self.alive && takes(&self.queues, queue)
    }
}
