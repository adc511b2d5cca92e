//! The list of workers for the engine: workers that report, and plain workers, which only their consumers reveal.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::Timestamp;
use switchyard_core::ir::queue_name::FUNCTION;
use switchyard_store::{StoreError, Worker, WorkerKind};

use crate::admin::{self, WorkerReport};
use crate::store::RedisStore;

/// How long a plain worker that reads nothing counts as alive: it may still work on a task that it has read.
const PLAIN_HOLDS: Duration = Duration::from_secs(300);

/// How long a plain worker that reads nothing is listed.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

impl RedisStore {
    pub(crate) async fn put_worker(&self, worker: &Worker, holds: Duration) -> Result<(), StoreError> {
        let report = WorkerReport {
            name: worker.name.to_string(),
            types: worker.queues.iter().map(ToString::to_string).collect(),
            slots: worker.slots,
            busy: worker.busy,
            host: String::new(),
            // Only workers of Switchyard processes report a process id, which distinguishes the two kinds.
            process: if worker.kind == WorkerKind::Process { std::process::id() } else { 0 },
            version: worker.version.to_string(),
            started: worker.since,
            holds,
        };
        self.admin().report(&report).await.map(drop)
    }

    pub(crate) async fn list_workers(&self) -> Result<Vec<Worker>, StoreError> {
        let admin = self.admin();
        let mut workers: Vec<Worker> = admin.workers().await?.into_iter().map(reported).collect();
        let now = self.now().await?;
        for (name, idle) in admin.plain_readers().await? {
            if idle < REMEMBERED && !workers.iter().any(|worker| *worker.name == *name) {
                workers.push(self.plain_worker(&name, idle, now));
            }
        }
        workers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(workers)
    }

    fn plain_worker(&self, name: &str, idle: Duration, now: Timestamp) -> Worker {
        let last_seen = now.minus(idle);
        let shared = std::iter::once(Arc::from(FUNCTION));
        Worker {
            name: name.into(),
            kind: WorkerKind::Plain,
            queues: shared.chain(self.keys.plain_queues().iter().cloned()).collect(),
            slots: 1,
            busy: 0,
            version: "".into(),
            since: last_seen,
            last_seen,
            alive: idle < PLAIN_HOLDS,
        }
    }
}

fn reported(worker: admin::Worker) -> Worker {
    Worker {
        name: worker.name.into(),
        kind: if worker.process == 0 { WorkerKind::Http } else { WorkerKind::Process },
        queues: worker.types.iter().map(|queue| queue.as_str().into()).collect(),
        slots: worker.slots,
        busy: worker.busy,
        version: worker.version.into(),
        since: worker.started,
        last_seen: worker.reported,
        alive: worker.alive,
    }
}
