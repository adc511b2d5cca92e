//! Reports the worker of this process, so that it is listed with what it serves.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{Busy, Engine, WorkerSettings};

const REPORT_EVERY: Duration = Duration::from_secs(5);
/// How long a report is valid: long enough that several reports may be late.
const HOLDS: Duration = Duration::from_secs(30);

pub(crate) async fn report_worker_forever(
    engine: Engine,
    worker: WorkerSettings,
    busy: Busy,
    stop: CancellationToken,
) {
    let since = engine.clock().now();
    while !stop.is_cancelled() {
        if let Err(error) = engine.report_worker(&worker, busy.slots(), since, HOLDS).await {
            tracing::warn!(%error, "a worker could not say that it is alive");
        }
        tokio::select! {
            () = tokio::time::sleep(REPORT_EVERY) => {}
            () = stop.cancelled() => {}
        }
    }
}
