//! Takes claims back from workers that went silent, and fails attempts that took longer than their limit.

use std::time::Duration;

use switchyard_observe::Once;
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// Makes a pass every `every`.
pub async fn reclaim_forever(engine: Engine, every: Duration, stop: CancellationToken) {
    let mut trouble = Once::default();
    while !stop.is_cancelled() {
        match engine.reclaim().await {
            Ok(claims) => {
                trouble.is_over();
                if claims > 0 {
                    tracing::warn!(claims, "took back claims of workers that went silent or took too long");
                }
            }
            Err(error) if trouble.is_news(&error) => {
                tracing::error!(%error, "claims could not be taken back")
            }
            Err(_) => {}
        }
        tokio::select! {
            () = engine.clock().sleep(every) => {}
            () = stop.cancelled() => {}
        }
    }
}
