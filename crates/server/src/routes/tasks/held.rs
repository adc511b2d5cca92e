//! Tasks that were handed out over HTTP by this process, with what is needed when they come back.
//!
//! Only a convenience: the store decides which claims count, and a task that is not in here (another server handed it
//! out) is settled all the same, without its result being remembered for a cache.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_core::Timestamp;
use switchyard_core::run::{ClaimRef, Task};
use switchyard_runtime::worker::Prepared;

/// From this many on, those that nobody can hold any more are looked for.
const CROWD: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct HeldTasks {
    by_claim: Mutex<HashMap<ClaimRef, Entry>>,
}

#[derive(Debug)]
struct Entry {
    held: Arc<Held>,
    until: Timestamp,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) task: Task,
    pub(super) prepared: Box<Prepared>,
    pub(super) time_limit: Option<Duration>,
    pub(super) since: Timestamp,
}

impl Held {
    pub(super) fn claim(&self) -> ClaimRef {
        ClaimRef { run: self.task.run, node: self.task.node.clone(), claim: self.task.claim }
    }

    /// The time limit, if it has passed.
    pub(super) fn overdue(&self, now: Timestamp) -> Option<Duration> {
        self.time_limit.filter(|limit| now >= self.since.plus(*limit))
    }
}

impl HeldTasks {
    pub(super) fn put(&self, held: Arc<Held>, until: Timestamp) {
        let mut by_claim = self.by_claim.lock();
        if by_claim.len() >= CROWD {
            let now = held.since;
            by_claim.retain(|_, entry| entry.until > now);
        }
        by_claim.insert(held.claim(), Entry { held, until });
    }

    pub(super) fn get(&self, claim: &ClaimRef) -> Option<Arc<Held>> {
        self.by_claim.lock().get(claim).map(|entry| entry.held.clone())
    }

    pub(super) fn extend(&self, claim: &ClaimRef, until: Timestamp) {
        if let Some(entry) = self.by_claim.lock().get_mut(claim) {
            entry.until = until;
        }
    }

    pub(super) fn forget(&self, claim: &ClaimRef) {
        self.by_claim.lock().remove(claim);
    }
}
