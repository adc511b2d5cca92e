//! A slot of a worker: settles the last task, claims the next, executes it; waits only when there is none.

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

/// How long a slot waits after the store did not answer.
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
        // The error that keeps this process from executing its tasks.
        let mut unable: Option<StoreError> = None;
        loop {
            let stopping = self.shared.stop.is_cancelled();
            if stopping && done.is_none() {
                return;
            }
            // A task that is handed back is for other workers: claiming in the same call could return it again.
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

    /// Executes a task. `Err` is an error of the store: the task is handed back.
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
                // A result other than success does not matter, because the handler was asked to stop.
                Stopped::WhenAsked(_) | Stopped::Dropped => Ok(TaskOutcome::Cancelled),
            },
            () = self.shared.hand_back.cancelled() => Ok(TaskOutcome::HandedBack),
        };
        // Also stores the log of an attempt that was stopped or timed out.
        held.logs.end().await;
        self.holding.put_down();
        let metrics = self.shared.services.observe.metrics();
        let outcome = ended.as_ref().unwrap_or(&TaskOutcome::HandedBack);
        metrics.executed(&task.queue, outcome.as_str(), begun.elapsed());
        (claim, ended)
    }

    /// The tracing span of a task, so that log lines of a handler name the step.
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

    /// Reports the error and waits. Returns whether to stop trying, because the worker is shutting down.
    async fn give_up(&self, error: &StoreError) -> bool {
        // Every slot gets this error repeatedly; it is logged once.
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

/// Whether the attempt timed out. The store enforces the same limit, and may have been first.
fn took_too_long(outcome: &TaskOutcome) -> bool {
    matches!(outcome, TaskOutcome::Failed(error) if *error.code == *TIMEOUT)
}
