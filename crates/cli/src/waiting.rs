//! Waits for stores that were started together with this process and are not ready yet.

use std::time::Duration;

use switchyard_store::StoreError;
use tokio::time::{Instant, sleep};

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::stores;

/// How long to wait between two probes.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Waits until the configured Redis and Postgres can be reached; fails after `stores.wait` with the reason. Other
/// problems are reported when they are opened.
pub(crate) async fn for_stores(settings: &Settings) -> Result<(), Failure> {
    let wait = Wait { max: settings.stores_wait, until: Instant::now() + settings.stores_wait };
    if let Some(target) = stores::postgres(settings)? {
        wait.while_away(async || switchyard_archive_postgres::probe(&target).await).await?;
    }
    if let Some(url) = &settings.redis {
        wait.while_away(async || switchyard_store_redis::probe(url.reveal()).await).await?;
    }
    Ok(())
}

struct Wait {
    max: Duration,
    until: Instant,
}

impl Wait {
    async fn while_away(&self, probe: impl AsyncFn() -> Option<StoreError>) -> Result<(), Failure> {
        let mut is_told = false;
        while let Some(error) = probe().await {
            if Instant::now() >= self.until {
                return Err(Failure::from(error).hint(self.advice()));
            }
            if !is_told {
                output::tell(&format!("{error}; waiting for it, {} s at most", self.max.as_secs_f64()));
            }
            is_told = true;
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    fn advice(&self) -> String {
        format!("it did not come within {} s; `stores.wait` is how long to wait", self.max.as_secs_f64())
    }
}
