//! Live workers and what each serves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_api::{WorkerView, WorkersView};
use switchyard_core::Timestamp;
use switchyard_core::in_flight::Want;
use switchyard_core::run::ClaimRef;
use switchyard_store::{Worker, WorkerKind};

use super::{Engine, EngineError};
use crate::WorkerSettings;

/// The shortest time between two reports of one worker to the store.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How many workers and claims are remembered. Beyond this, those that were silent for [`FORGOTTEN_AFTER`] are
/// removed.
const SEEN_MAX: usize = 10_000;
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// Details that an HTTP worker sends with a claim request.
#[derive(Clone, Debug, Default)]
pub struct WorkerClaim {
    pub slots: usize,
    pub busy: usize,
    pub version: Arc<str>,
}

/// HTTP workers that have contacted this process, and the claims that they hold.
#[derive(Debug, Default)]
pub(crate) struct SeenWorkers {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    by_name: HashMap<Arc<str>, SeenWorker>,
    /// The worker of each claim, and the time of its last sign of life.
    by_claim: HashMap<ClaimRef, (Arc<str>, Timestamp)>,
}

/// A worker as it was last reported.
#[derive(Clone, Debug)]
struct SeenWorker {
    worker: Worker,
    holds: Duration,
}

impl SeenWorkers {
    /// Records a worker. Returns it if the store needs a new report.
    fn note(&self, mut worker: Worker, holds: Duration) -> Option<SeenWorker> {
        let (now, mut seen) = (worker.last_seen, self.seen.lock());
        if seen.by_name.len() >= SEEN_MAX {
            seen.by_name.retain(|_, seen| now.since(seen.worker.last_seen) < FORGOTTEN_AFTER);
        }
        if let Some(known) = seen.by_name.get(&worker.name) {
            worker.since = known.worker.since;
            let recent = now.since(known.worker.last_seen) < REPORT_EVERY;
            if recent && known.worker.queues == worker.queues && known.holds == holds {
                return None;
            }
        }
        let noted = SeenWorker { worker, holds };
        seen.by_name.insert(noted.worker.name.clone(), noted.clone());
        Some(noted)
    }

    fn note_claim(&self, worker: &Arc<str>, claim: ClaimRef, now: Timestamp) {
        let mut seen = self.seen.lock();
        if seen.by_claim.len() >= SEEN_MAX {
            seen.by_claim.retain(|_, (_, at)| now.since(*at) < FORGOTTEN_AFTER);
        }
        seen.by_claim.insert(claim, (worker.clone(), now));
    }

    /// Records a heartbeat. Returns its worker if the store needs a new report.
    fn note_heartbeat(&self, claim: &ClaimRef, now: Timestamp) -> Option<SeenWorker> {
        let mut seen = self.seen.lock();
        let (name, at) = seen.by_claim.get_mut(claim)?;
        *at = now;
        let name = name.clone();
        let known = seen.by_name.get_mut(&name)?;
        if now.since(known.worker.last_seen) < REPORT_EVERY {
            return None;
        }
        known.worker.last_seen = now;
        Some(known.clone())
    }

    fn forget_claim(&self, claim: &ClaimRef) {
        self.seen.lock().by_claim.remove(claim);
    }
}

impl Engine {
    /// Records that an HTTP worker asks for tasks. It counts as alive for `holds`.
    pub async fn note_worker(
        &self,
        want: &Want,
        claim: WorkerClaim,
        holds: Duration,
    ) -> Result<(), EngineError> {
        let now = self.clock.now();
        let worker = Worker {
            name: want.worker.clone(),
            kind: WorkerKind::Http,
            queues: want.queues.clone(),
            slots: claim.slots,
            busy: claim.busy,
            version: claim.version,
            since: now,
            last_seen: now,
            alive: true,
        };
        self.report(self.seen_workers.note(worker, holds)).await
    }

    /// Records which HTTP worker holds a claim: heartbeats for the claim show that the worker is alive.
    pub fn note_claim(&self, worker: &Arc<str>, claim: ClaimRef) {
        self.seen_workers.note_claim(worker, claim, self.clock.now());
    }

    /// Records that a claim of an HTTP worker was settled.
    pub fn forget_claim(&self, claim: &ClaimRef) {
        self.seen_workers.forget_claim(claim);
    }

    pub(super) async fn note_heartbeat(&self, claim: &ClaimRef) -> Result<(), EngineError> {
        self.report(self.seen_workers.note_heartbeat(claim, self.clock.now())).await
    }

    async fn report(&self, seen: Option<SeenWorker>) -> Result<(), EngineError> {
        match seen {
            Some(SeenWorker { worker, holds }) => Ok(self.hot.report_worker(&worker, holds).await?),
            None => Ok(()),
        }
    }

    /// Reports a worker of this process. It counts as alive for `holds`.
    pub async fn report_worker(
        &self,
        settings: &WorkerSettings,
        busy: usize,
        since: Timestamp,
        holds: Duration,
    ) -> Result<(), EngineError> {
        let worker = Worker {
            name: settings.name.clone(),
            kind: WorkerKind::Process,
            queues: settings.queues.clone(),
            slots: settings.slots,
            busy,
            version: env!("CARGO_PKG_VERSION").into(),
            since,
            last_seen: self.clock.now(),
            alive: true,
        };
        Ok(self.hot.report_worker(&worker, holds).await?)
    }

    /// Every worker that reported within the last day, ordered by name.
    pub async fn workers(&self) -> Result<WorkersView, EngineError> {
        let workers = self.hot.workers().await?;
        Ok(WorkersView { workers: workers.into_iter().map(WorkerView::from).collect() })
    }
}
