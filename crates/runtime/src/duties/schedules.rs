//! Starts workflows that are scheduled.

use std::time::Duration;

use switchyard_observe::Once;
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// The schedules are looked at this often at least: another process may have changed them.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Starts what is due, and sleeps until the next start.
pub async fn keep_schedules(engine: Engine, stop: CancellationToken) {
    let mut trouble = Once::default();
    while !stop.is_cancelled() {
        let now = engine.clock().now();
        let mut wake_at = now.plus(LOOK_EVERY);
        match engine.start_due().await {
            Ok(pass) => {
                trouble.is_over();
                for (schedule, error) in &pass.failed {
                    tracing::error!(%schedule, %error, "a scheduled workflow could not be started");
                }
                wake_at = pass.next.map_or(wake_at, |next| next.min(wake_at));
            }
            Err(error) if trouble.is_news(&error) => {
                tracing::error!(%error, "the schedules could not be read")
            }
            Err(_) => {}
        }
        tokio::select! {
            () = engine.clock().sleep_until(wake_at) => {}
            () = stop.cancelled() => {}
        }
    }
}
