//! Gives the hot store whatever the archive says is unfinished and the hot store lacks: after it was wiped, lost its
//! last second, or became an older copy of itself.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Engine;

/// Makes a pass every `every`. Any number of processes may make it at once.
pub async fn recover_forever(engine: Engine, every: Duration, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match engine.recover().await {
            Ok(recovered) if recovered.runs == 0 => {}
            Ok(recovered) => {
                tracing::warn!(runs = recovered.runs, "the hot store had lost runs, which go on now")
            }
            Err(error) => tracing::error!(%error, "the hot store could not be compared with the archive"),
        }
        tokio::select! {
            () = engine.clock().sleep_until(engine.clock().now().plus(every)) => {}
            () = stop.cancelled() => {}
        }
    }
}
