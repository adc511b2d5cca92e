//! Starts scheduled workflows.

use std::time::Duration;

use switchyard_observe::Once;
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// The longest time between two looks at the schedules: another process may have changed them.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Starts the schedules that are due, and sleeps until the next start.
pub async fn keep_schedules(engine: Engine, stop: CancellationToken) {
    let mut trouble = Once::default();
    while !stop.is_cancelled() {
        let mut next = None;
        match engine.start_due().await {
            Ok(pass) => {
                trouble.is_over();
                for (schedule, error) in &pass.failed {
                    tracing::error!(%schedule, %error, "a scheduled workflow could not be started");
                }
                next = pass.next;
            }
            Err(error) if trouble.is_news(&error) => {
                tracing::error!(%error, "the schedules could not be read")
            }
            Err(_) => {}
        }
        let due = async {
            match next {
                Some(at) => engine.clock().sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = engine.clock().sleep(LOOK_EVERY) => {}
            () = stop.cancelled() => {}
        }
    }
}
