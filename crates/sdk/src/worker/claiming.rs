//! Claims as many tasks from the server as there are free slots.

use std::sync::Arc;
use std::time::Duration;

use switchyard_api::HeldTask;
use switchyard_client::{ClaimTasks, Client};
use switchyard_runtime::Handlers;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::task;

/// The most tasks that a server returns for one claim.
const CLAIM_MAX: usize = 100;

/// How long a claim waits for tasks.
const WAIT: Duration = Duration::from_secs(20);

/// The pause between two claims while the server does not answer.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);

/// The configuration and the shared state of a running worker.
pub(super) struct Claiming {
    pub(super) client: Client,
    pub(super) handlers: Handlers,
    pub(super) name: String,
    pub(super) functions: Vec<String>,
    /// The queues to claim from, as types of task.
    pub(super) queues: Vec<String>,
    pub(super) slots: usize,
    pub(super) version: String,
    pub(super) lease: Duration,
    pub(super) cancel_grace: Duration,
    pub(super) stop: CancellationToken,
    pub(super) hand_back: CancellationToken,
}

/// Claims and executes tasks until `stop` is cancelled, then waits until all tasks have ended.
pub(super) async fn work(claiming: Arc<Claiming>) {
    let slots = Arc::new(Semaphore::new(claiming.slots));
    let mut tasks = JoinSet::new();
    let mut troubled = false;
    while let Some(first) = free_slot(&slots, &claiming.stop).await {
        // Removes tasks that have ended from the set.
        while tasks.try_join_next().is_some() {}
        let claimed = tokio::select! {
            claimed = claiming.claim(1 + slots.available_permits()) => claimed,
            // The server notices that the client has disconnected, and hands out no task.
            () = claiming.stop.cancelled() => break,
        };
        match claimed {
            Ok(held) => {
                troubled = false;
                start(&mut tasks, &claiming, &slots, first, held);
            }
            Err(error) => {
                if !std::mem::replace(&mut troubled, true) {
                    tracing::warn!(%error, "no work can be claimed; trying on");
                }
                let pause = tokio::time::sleep(AFTER_TROUBLE);
                tokio::select! { () = pause => {}, () = claiming.stop.cancelled() => {} }
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

async fn free_slot(slots: &Arc<Semaphore>, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        // The semaphore is never closed.
        slot = slots.clone().acquire_owned() => slot.ok(),
    }
}

fn start(
    tasks: &mut JoinSet<()>,
    claiming: &Arc<Claiming>,
    slots: &Arc<Semaphore>,
    first: OwnedSemaphorePermit,
    held: Vec<HeldTask>,
) {
    let mut first = Some(first);
    for task in held {
        // Only this loop takes slots, so the slots that were free at the claim are still free.
        let slot = first.take().or_else(|| slots.clone().try_acquire_owned().ok());
        let claiming = claiming.clone();
        tasks.spawn(async move {
            task::carry_out(&claiming, task).await;
            drop(slot);
        });
    }
}

impl Claiming {
    async fn claim(&self, free: usize) -> Result<Vec<HeldTask>, switchyard_client::Error> {
        let claim = ClaimTasks {
            worker: self.name.clone(),
            functions: self.functions.clone(),
            types: self.queues.clone(),
            slots: free.min(CLAIM_MAX),
            wait: WAIT,
            lease: self.lease,
            busy: self.slots.saturating_sub(free),
            version: self.version.clone(),
        };
        self.client.claim(&claim).await
    }
}
