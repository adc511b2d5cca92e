//! The state of the shipper in this process.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Shipper {
    /// Held during a pass: one at a time ships from this process.
    pub(super) pass: AsyncMutex<()>,
    /// The fencing number of the lock while this process has it, else 0.
    pub(super) fence: AtomicU64,
    /// The fencing number of the lock under which this process last reported spans.
    pub(super) reported_under: AtomicU64,
    /// When the archive was last compared with the identity and position that Redis has stored.
    pub(super) compared: Mutex<Option<Instant>>,
    pub(super) urgent: Notify,
    pub(super) on_duty: AtomicBool,
    pub(super) stuck_after: Duration,
}

impl Shipper {
    /// The outbox counts as stuck when an entry has waited for `stuck_after`.
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

    /// Makes the shipper ship at once, because a caller waits for the newest change.
    pub(crate) fn hurry(&self) {
        self.urgent.notify_one();
    }

    /// Whether this process runs the shipping duty, and does not only ship on request.
    pub(crate) fn is_on_duty(&self) -> bool {
        self.on_duty.load(Ordering::Relaxed)
    }

    /// The fencing number of the lock, if this process has it.
    pub(crate) fn fence(&self) -> Option<u64> {
        Some(self.fence.load(Ordering::Relaxed)).filter(|fence| *fence > 0)
    }
}
