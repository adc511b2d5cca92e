//! Removes operations a day after their request. A later repetition counts as a new request.

use std::time::Duration;

use switchyard_observe::Once;
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// Makes a pass every `every`. Any number of processes may make it at once.
pub async fn forget_operations_forever(engine: Engine, every: Duration, stop: CancellationToken) {
    let mut trouble = Once::default();
    while !stop.is_cancelled() {
        match engine.forget_operations().await {
            Ok(_) => trouble.is_over(),
            Err(error) if trouble.is_news(&error) => {
                tracing::error!(%error, "old operations could not be removed")
            }
            Err(_) => {}
        }
        tokio::select! {
            () = engine.clock().sleep_until(engine.clock().now().plus(every)) => {}
            () = stop.cancelled() => {}
        }
    }
}
