//! One slot: settle what is done, claim what is next, execute it; wait only when there is nothing.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::run::{ClaimRef, Settled, Settlement, Task, TaskOutcome};
use switchyard_store::StoreError;
use tracing::{Instrument, Span};

use super::heartbeat::Holding;
use super::local::{Held, LocalClaim};
use super::pool::Shared;
use crate::handlers::Stopped;
use crate::kinds::TIMEOUT;

/// How long to wait after the store did not answer.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);

pub(super) struct Slot {
    shared: Arc<Shared>,
    holding: Arc<Holding>,
}

impl Slot {
    pub(super) fn new(shared: Arc<Shared>, holding: Arc<Holding>) -> Self {
        Self { shared, holding }
    }

    pub(super) async fn work(self) {
        let mut done: Option<Settlement> = None;
        // What keeps this process from executing what it claims.
        let mut unable: Option<StoreError> = None;
        loop {
            let stopping = self.shared.stop.is_cancelled();
            if stopping && done.is_none() {
                return;
            }
            // What is handed back is for others: who claims in the same call would get it again.
            let want = if stopping || unable.is_some() { &self.shared.nothing } else { &self.shared.want };
            match self.shared.hot.step(done.iter().cloned().collect(), want).await {
                Ok((settled, tasks)) => {
                    self.note(done.take(), &settled);
                    if let Some(error) = unable.take() {
                        if self.give_up(&error).await {
                            return;
                        }
                        continue;
                    }
                    match tasks.into_iter().next() {
                        Some(task) => {
                            let (claim, ended) = self.execute(task).await;
                            let outcome = ended.unwrap_or_else(|error| {
                                unable = Some(error);
                                TaskOutcome::HandedBack
                            });
                            done = Some(Settlement { claim, outcome });
                        }
                        None if stopping => return,
                        None => self.wait_for_work().await,
                    }
                }
                Err(error) => {
                    if self.give_up(&error).await {
                        return;
                    }
                }
            }
        }
    }

    /// An error is the store's: the task is handed back.
    async fn execute(&self, task: Task) -> (ClaimRef, Result<TaskOutcome, StoreError>) {
        let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
        let held = self.hold(claim.clone());
        let begun = tokio::time::Instant::now();
        let executing = super::execute::execute(&self.shared.services, &task, &held);
        let work = executing.instrument(self.span(&task));
        let ended = tokio::select! {
            biased;
            ended = held.cancellation.carry(work, self.shared.stop_grace) => match ended {
                Stopped::Ended(ended) | Stopped::WhenAsked(ended @ Ok(TaskOutcome::Succeeded(_) | TaskOutcome::Cached(_))) => ended,
                // Its error does not matter: it was told to stop.
                Stopped::WhenAsked(_) | Stopped::Dropped => Ok(TaskOutcome::Cancelled),
            },
            () = self.shared.hand_back.cancelled() => Ok(TaskOutcome::HandedBack),
        };
        // Also what an attempt logged that was stopped or took too long.
        held.logs.end().await;
        self.holding.put_down();
        let metrics = self.shared.services.observe.metrics();
        let outcome = ended.as_ref().unwrap_or(&TaskOutcome::HandedBack);
        metrics.executed(&task.queue, outcome.as_str(), begun.elapsed());
        (claim, ended)
    }

    /// What a handler logs says which step it is.
    fn span(&self, task: &Task) -> Span {
        let worker = &self.shared.want.worker;
        tracing::info_span!("step", run = %task.run, node = %task.node, attempt = task.attempt, %worker)
    }

    fn hold(&self, claim: ClaimRef) -> Held {
        let cancellation = self.holding.take_up(claim.clone());
        let Shared { hot, services, want, .. } = &*self.shared;
        let (hot, payloads) = (hot.clone(), services.payloads.clone());
        let claim = Arc::new(LocalClaim { hot, payloads, claim, lease: want.lease });
        Held::new(cancellation, claim, services.clock.clone())
    }

    async fn wait_for_work(&self) {
        tokio::select! {
            () = self.shared.hot.work_ready(&self.shared.want) => {}
            () = self.shared.stop.cancelled() => {}
        }
    }

    fn note(&self, settlement: Option<Settlement>, settled: &[Settled]) {
        self.shared.trouble.send_if_modified(|trouble| trouble.take().is_some());
        if let (Some(settlement), Some(answer)) = (settlement, settled.first())
            && *answer != Settled::Applied
            && !took_too_long(&settlement.outcome)
        {
            let ClaimRef { run, node, claim } = settlement.claim;
            tracing::warn!(%run, %node, claim, ?answer, "a settlement came too late and changed nothing");
        }
    }

    /// Whether to stop trying, because the worker is being shut down anyway.
    async fn give_up(&self, error: &StoreError) -> bool {
        // Every slot finds out, again and again: it is said once.
        let why = error.to_string();
        let said = self.shared.trouble.send_if_modified(|trouble| trouble.replace(why.clone()) != Some(why));
        if said {
            tracing::error!(%error, "the store did not take a step");
        }
        if self.shared.stop.is_cancelled() {
            return true;
        }
        tokio::select! {
            () = tokio::time::sleep(AFTER_TROUBLE) => false,
            () = self.shared.stop.cancelled() => true,
        }
    }
}

/// The store ends such an attempt as well, and may have been first.
fn took_too_long(outcome: &TaskOutcome) -> bool {
    matches!(outcome, TaskOutcome::Failed(error) if *error.code == *TIMEOUT)
}
