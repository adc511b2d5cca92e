//! Workers that are alive, and what each serves.

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

/// A worker that claims often is reported to the store once in this time.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Workers and claims that are remembered here. Beyond this, those that have been silent for long are forgotten.
const SEEN_MAX: usize = 10_000;
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// What a worker over HTTP says about itself with a claim.
#[derive(Clone, Debug, Default)]
pub struct WorkerClaim {
    pub slots: usize,
    pub busy: usize,
    pub version: Arc<str>,
}

/// Workers over HTTP that this process has heard of, and the claims that they hold.
#[derive(Debug, Default)]
pub(crate) struct SeenWorkers {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    by_name: HashMap<Arc<str>, SeenWorker>,
    /// Whose claim it is, and when that was last heard of.
    by_claim: HashMap<ClaimRef, (Arc<str>, Timestamp)>,
}

/// As it was last reported.
#[derive(Clone, Debug)]
struct SeenWorker {
    worker: Worker,
    holds: Duration,
}

impl SeenWorkers {
    /// Notes what a worker says. It is answered if it is to be reported.
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

    /// The worker that a heartbeat comes from, if it is to be reported.
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
    /// Notes that a worker over HTTP asks for tasks. It counts as alive for `holds`.
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

    /// Notes which worker over HTTP holds a claim: heartbeats for it say that the worker is alive.
    pub fn note_claim(&self, worker: &Arc<str>, claim: ClaimRef) {
        self.seen_workers.note_claim(worker, claim, self.clock.now());
    }

    /// Notes that a claim of a worker over HTTP was settled.
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

    /// Every worker that was heard of within a day, in the order of their names.
    pub async fn workers(&self) -> Result<WorkersView, EngineError> {
        let workers = self.hot.workers().await?;
        Ok(WorkersView { workers: workers.into_iter().map(WorkerView::from).collect() })
    }
}
