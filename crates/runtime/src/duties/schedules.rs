//! Starts workflows that are scheduled.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Engine;

/// The schedules are looked at this often at least: another process may have changed them.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Starts what is due, and sleeps until the next start.
pub async fn keep_schedules(engine: Engine, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let now = engine.clock().now();
        let mut wake_at = now.plus(LOOK_EVERY);
        match engine.start_due().await {
            Ok(pass) => {
                for (schedule, error) in &pass.failed {
                    tracing::error!(%schedule, %error, "a scheduled workflow could not be started");
                }
                wake_at = pass.next.map_or(wake_at, |next| next.min(wake_at));
            }
            Err(error) => tracing::error!(%error, "the schedules could not be read"),
        }
        tokio::select! {
            () = engine.clock().sleep_until(wake_at) => {}
            () = stop.cancelled() => {}
        }
    }
}
