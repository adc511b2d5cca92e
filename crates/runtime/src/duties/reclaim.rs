//! Takes claims back from workers that went silent.

use std::sync::Arc;
use std::time::Duration;

use switchyard_store::{Clock, HotStore};
use tokio_util::sync::CancellationToken;

/// Makes a pass every `every`.
pub async fn reclaim_forever(
    hot: Arc<dyn HotStore>,
    clock: Arc<dyn Clock>,
    every: Duration,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        match hot.reclaim().await {
            Ok(0) => {}
            Ok(claims) => tracing::warn!(claims, "took back claims of workers that went silent"),
            Err(error) => tracing::error!(%error, "claims could not be taken back"),
        }
        tokio::select! {
            () = clock.sleep_until(clock.now().plus(every)) => {}
            () = stop.cancelled() => {}
        }
    }
}
