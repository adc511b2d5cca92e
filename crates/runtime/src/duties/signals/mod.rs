//! Turns signals of plain workers into settlements, and takes tasks back from plain workers that went silent.

mod mover;
mod signal;

use std::sync::Arc;
use std::time::Duration;

use switchyard_store::HotStore;
use switchyard_store::plain::PlainWorkers;
use tokio_util::sync::CancellationToken;

use crate::kinds::Services;
use mover::Mover;

/// How long the duty waits after a store did not answer, or before it handles a remaining signal again.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Settings for plain workers.
#[derive(Clone, Copy, Debug)]
pub struct PlainSettings {
    /// How long a worker keeps a task without a sign of life.
    pub lease: Duration,
}

/// Settles signals as they arrive. Any number of processes may do that at once.
pub async fn move_signals(
    plain: Arc<dyn PlainWorkers>,
    hot: Arc<dyn HotStore>,
    services: Arc<Services>,
    settings: PlainSettings,
    stop: CancellationToken,
) {
    let mover = Mover { plain, hot, services, lease: settings.lease };
    while !stop.is_cancelled() {
        let pause = match mover.pass().await {
            Ok(pass) if pass.left > 0 => true,
            Ok(pass) if pass.settled > 0 => false,
            Ok(_) => {
                tokio::select! {
                    () = mover.plain.signals_ready() => {}
                    () = stop.cancelled() => {}
                }
                false
            }
            Err(error) => {
                tracing::error!(%error, "signals of plain workers could not be settled");
                true
            }
        };
        if pause {
            tokio::select! {
                () = tokio::time::sleep(AFTER_TROUBLE) => {}
                () = stop.cancelled() => {}
            }
        }
    }
}

/// Makes a pass every `every`.
pub async fn take_back_forever(
    plain: Arc<dyn PlainWorkers>,
    settings: PlainSettings,
    every: Duration,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        match plain.take_back(settings.lease).await {
            Ok(0) => {}
            Ok(tasks) => tracing::warn!(tasks, "took tasks back that plain workers had read and kept"),
            Err(error) => tracing::error!(%error, "tasks of plain workers could not be looked through"),
        }
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = stop.cancelled() => {}
        }
    }
}
