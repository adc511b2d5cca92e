//! Sends heartbeats for long tasks to the store, and forwards requests to stop to the tasks.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_core::in_flight::ClaimStatus;
use switchyard_core::run::ClaimRef;
use switchyard_store::HotStore;

use crate::handlers::Cancellation;

/// The task that a slot executes now.
#[derive(Debug, Default)]
pub(super) struct Holding {
    held: Mutex<Option<Held>>,
}

#[derive(Clone, Debug)]
struct Held {
    claim: ClaimRef,
    stop: Cancellation,
}

impl Holding {
    pub(super) fn take_up(&self, claim: ClaimRef) -> Cancellation {
        let stop = Cancellation::default();
        *self.held.lock() = Some(Held { claim, stop: stop.clone() });
        stop
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.lock().is_some()
    }

    pub(super) fn put_down(&self) {
        *self.held.lock() = None;
    }
}

pub(super) async fn keep_claims(
    hot: Arc<dyn HotStore>,
    slots: Vec<Arc<Holding>>,
    lease: Option<Duration>,
    every: Duration,
) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let held: Vec<Held> = slots.iter().filter_map(|slot| slot.held.lock().clone()).collect();
        if held.is_empty() {
            continue;
        }
        let claims: Vec<ClaimRef> = held.iter().map(|held| held.claim.clone()).collect();
        match hot.heartbeat(&claims, lease).await {
            Ok(standings) => {
                for (held, standing) in held.iter().zip(standings) {
                    // The claim is lost or its run is closing: the handler should stop.
                    if standing != ClaimStatus::Held {
                        held.stop.request();
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "heartbeat failed"),
        }
    }
}
