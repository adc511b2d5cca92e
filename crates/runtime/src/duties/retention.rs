//! Removes runs that ended long ago, and payloads that no record mentions.

use std::time::Duration;

use switchyard_store::RetentionPolicy;
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// Makes a pass every `every`.
pub async fn retain_forever(
    engine: Engine,
    policy: RetentionPolicy,
    every: Duration,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        match engine.retain(&policy).await {
            Ok(gone) if gone.runs + gone.payloads == 0 => {}
            Ok(gone) => {
                tracing::info!(runs = gone.runs, payloads = gone.payloads, "removed what is no longer kept");
            }
            Err(error) => tracing::error!(%error, "what is no longer kept could not be removed"),
        }
        tokio::select! {
            () = engine.clock().sleep(every) => {}
            () = stop.cancelled() => {}
        }
    }
}
