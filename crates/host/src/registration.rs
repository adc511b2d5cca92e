//! Registration of a worker: from its first report until it leaves the group.

use std::time::Duration;

use parking_lot::Mutex;
use switchyard_runtime::{Busy, WorkerSettings};
use switchyard_store::{Clock, SystemClock};
use switchyard_store_redis::{ConsumerMonitor, RedisAdmin, WorkerReport};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long a report of a worker without a lease is valid.
const HOLDS: Duration = Duration::from_secs(30);
/// The time limit for leaving the group. After it, the consumer stays behind as a ghost, and nothing is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reports a worker periodically, also while its last tasks finish.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    stop: CancellationToken,
    reporting: Mutex<JoinSet<()>>,
}

impl Registration {
    pub(crate) fn begin(&self, admin: RedisAdmin, worker: &WorkerSettings, busy: Busy) {
        let holds = worker.lease.unwrap_or(HOLDS);
        let report = WorkerReport {
            name: worker.name.to_string(),
            types: worker.queues.iter().map(ToString::to_string).collect(),
            slots: worker.slots,
            busy: 0,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: SystemClock.now(),
            holds,
        };
        let now = move || WorkerReport { busy: busy.slots(), ..report.clone() };
        // Three reports may be lost.
        self.reporting.lock().spawn(admin.report_forever(now, holds / 4, self.stop.clone()));
    }

    /// Phase 3 of a stop: pending entries are moved, then the consumer leaves the group.
    pub(crate) async fn end(self, monitor: &ConsumerMonitor, name: &str) {
        self.stop.cancel();
        let mut reporting = self.reporting.into_inner();
        while reporting.join_next().await.is_some() {}
        match tokio::time::timeout(PATIENCE, monitor.admin.leave(name)).await {
            Ok(Ok(left)) => {
                monitor.metrics.entries_moved(left.returned, left.claimed, left.void);
                tracing::info!(
                    phase = 3,
                    groups = left.groups,
                    moved = left.moved(),
                    kept = left.kept,
                    "left the group"
                );
            }
            Ok(Err(error)) => tracing::warn!(phase = 3, %error, "could not leave the group"),
            Err(_) => tracing::warn!(phase = 3, "could not leave the group in time"),
        }
    }
}
