//! Fires timers when they are due: retries, sleeps, time-outs, deadlines.

use std::sync::Arc;
use std::time::Duration;

use switchyard_observe::Once;
use switchyard_store::{Clock, HotStore};
use tokio_util::sync::CancellationToken;

/// How long to wait after the store did not answer.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Fires what is due, sleeps until the next, and looks again when an earlier one is set.
pub async fn keep_time(hot: Arc<dyn HotStore>, clock: Arc<dyn Clock>, stop: CancellationToken) {
    let mut trouble = Once::default();
    while !stop.is_cancelled() {
        let next = match hot.fire_timers().await {
            Ok((_, next)) => {
                trouble.is_over();
                next
            }
            Err(error) => {
                if trouble.is_news(&error) {
                    tracing::error!(%error, "timers could not be fired");
                }
                Some(clock.now().plus(AFTER_TROUBLE))
            }
        };
        let due = async {
            match next {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = hot.timers_changed() => {}
            () = stop.cancelled() => {}
        }
    }
}
