//! Executes bulk jobs, a page at a time.

use std::time::Duration;

use switchyard_observe::Once;
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// Makes passes one after the other while there is work, and otherwise one every `every`.
pub async fn work_bulk_forever(engine: Engine, every: Duration, stop: CancellationToken) {
    let mut trouble = Once::default();
    while !stop.is_cancelled() {
        let more = tokio::select! {
            more = engine.work_bulk() => more,
            () = stop.cancelled() => return,
        };
        match more {
            Ok(true) => {
                trouble.is_over();
                continue;
            }
            Ok(false) => trouble.is_over(),
            Err(error) if trouble.is_news(&error) => {
                tracing::error!(%error, "a bulk job does not get on; it is tried again");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = engine.clock().sleep_until(engine.clock().now().plus(every)) => {}
            () = stop.cancelled() => {}
        }
    }
}
