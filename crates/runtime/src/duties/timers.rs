//! Fires timers when they are due: retries, sleeps, time-outs, deadlines.

use std::time::Duration;

use switchyard_core::Timestamp;
use switchyard_observe::Once;
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// How long the duty waits after the store did not answer.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Why the duty wakes up.
enum Next {
    At(Timestamp),
    TryAgain,
    Nothing,
}

/// Fires the timers that are due, sleeps until the next one, and looks again when an earlier one is set.
pub async fn keep_time(engine: Engine, stop: CancellationToken) {
    let mut trouble = Once::default();
    while !stop.is_cancelled() {
        let next = match engine.fire_timers().await {
            Ok((_, next)) => {
                trouble.is_over();
                next.map_or(Next::Nothing, Next::At)
            }
            Err(error) => {
                if trouble.is_news(&error) {
                    tracing::error!(%error, "timers could not be fired");
                }
                Next::TryAgain
            }
        };
        let due = async {
            match next {
                Next::At(at) => engine.clock().sleep_until(at).await,
                Next::TryAgain => engine.clock().sleep(AFTER_TROUBLE).await,
                Next::Nothing => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = engine.hot.timers_changed() => {}
            () = stop.cancelled() => {}
        }
    }
}
