//! Restores unfinished runs of the archive that the hot store lacks: after it was wiped, lost its
//! last second, or became an older copy of itself.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Engine;

/// A pass reads every unfinished run, so slow passes are made less often: a pass takes at most about one part in
/// `SHARE` of the time.
const SHARE: u32 = 20;

/// Makes a pass every `every`, in turns with the other processes that share the hot store.
pub async fn recover_forever(engine: Engine, every: Duration, stop: CancellationToken) {
    let mut apart = every;
    while !stop.is_cancelled() {
        let began = engine.clock().now();
        match engine.recover_in_turn(apart).await {
            Ok(None) => {}
            Ok(Some(recovered)) => {
                if recovered.runs > 0 {
                    tracing::warn!(runs = recovered.runs, "the hot store had lost runs, which go on now");
                }
                apart = every.max(engine.clock().now().since(began) * SHARE);
            }
            Err(error) => tracing::error!(%error, "the hot store could not be compared with the archive"),
        }
        tokio::select! {
            () = engine.clock().sleep(every) => {}
            () = stop.cancelled() => {}
        }
    }
}
