//! The state of a process as a shipper of the outbox.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Shipper {
    /// One pass at a time ships from this process.
    pub(super) pass: AsyncMutex<()>,
    /// Of the lock, while this process has it; else 0.
    pub(super) fence: AtomicU64,
    /// The lock under which spans were last reported here.
    pub(super) reported_under: AtomicU64,
    /// When the archive was last compared with what Redis has seen of it.
    pub(super) compared: Mutex<Option<Instant>>,
    pub(super) urgent: Notify,
    pub(super) on_duty: AtomicBool,
    pub(super) stuck_after: Duration,
}

impl Shipper {
    /// An entry that waits for longer than `stuck_after` is reported as stuck.
    pub(crate) fn new(stuck_after: Duration) -> Self {
        Self {
            pass: AsyncMutex::default(),
            fence: AtomicU64::default(),
            reported_under: AtomicU64::default(),
            compared: Mutex::default(),
            urgent: Notify::new(),
            on_duty: AtomicBool::default(),
            stuck_after,
        }
    }

    /// A caller waits for the newest change: it is shipped at once.
    pub(crate) fn hurry(&self) {
        self.urgent.notify_one();
    }

    /// Whether this process has the duty to ship the outbox, and does not only ship on request.
    pub(crate) fn is_on_duty(&self) -> bool {
        self.on_duty.load(Ordering::Relaxed)
    }

    /// The fencing number of the lock, if this process has it.
    pub(crate) fn fence(&self) -> Option<u64> {
        Some(self.fence.load(Ordering::Relaxed)).filter(|fence| *fence > 0)
    }
}
