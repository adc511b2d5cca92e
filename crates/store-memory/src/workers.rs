//! Workers that have reported to this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_core::Timestamp;
use switchyard_store::Worker;

/// How long a worker stays listed after its last report.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(crate) struct ReportedWorkers {
    by_name: Mutex<BTreeMap<Arc<str>, Reported>>,
}

#[derive(Debug)]
struct Reported {
    worker: Worker,
    at: Timestamp,
    holds: Duration,
}

impl ReportedWorkers {
    pub(crate) fn report(&self, worker: Worker, holds: Duration, at: Timestamp) {
        let mut by_name = self.by_name.lock();
        by_name.retain(|_, reported| at.since(reported.at) < REMEMBERED);
        by_name.insert(worker.name.clone(), Reported { worker, at, holds });
    }

    pub(crate) fn sign_off(&self, name: &str) {
        self.by_name.lock().remove(name);
    }

    pub(crate) fn list(&self, now: Timestamp) -> Vec<Worker> {
        let by_name = self.by_name.lock();
        let recent = by_name.values().filter(|reported| now.since(reported.at) < REMEMBERED);
        recent.map(|reported| reported.listed(now)).collect()
    }
}

impl Reported {
    fn listed(&self, now: Timestamp) -> Worker {
        let alive = now.since(self.at) <= self.holds;
        Worker { last_seen: self.at, alive, ..self.worker.clone() }
    }
}
