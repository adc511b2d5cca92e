//! [`HotStore`] over the core's in-flight state, in memory.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use switchyard_core::in_flight::{
    Acceptance, Applied, ClaimStatus, Command, InFlight, Limits, NewRun, QueueDepth, Want,
};
use switchyard_core::ir::Ir;
use switchyard_core::run::{ClaimRef, Event, Operation, Progress, Run, Settled, Settlement, Task};
use switchyard_core::{ApprovalId, RunId, Timestamp};
use switchyard_observe::Observe;
use switchyard_store::{
    Change, Clock, Followers, HotStore, IdleWorkers, Journal, Size, StoreError, Unfinished, Worker, news,
};
use tokio::sync::{Notify, watch};

use crate::workers::ReportedWorkers;

/// The in-process hot store.
pub struct MemoryStore {
    // A std-like mutex, because nothing awaits while it is held: a call is a few microseconds of pure code.
    in_flight: Mutex<InFlight>,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    idle: IdleWorkers,
    followers: Followers,
    timers: Notify,
    workers: ReportedWorkers,
    observe: Observe,
    /// The error with which the archive refused events. From then on this store is ahead of the archive, and answers
    /// nothing.
    failed: OnceLock<StoreError>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("runs", &self.in_flight.lock().len()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store. [`HotStore::restore`] adds the archive's unfinished runs.
    pub fn new(journal: Arc<dyn Journal>, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self {
            in_flight: Mutex::new(InFlight::new(limits)),
            journal,
            clock,
            idle: IdleWorkers::default(),
            followers: Followers::default(),
            timers: Notify::new(),
            workers: ReportedWorkers::default(),
            observe: Observe::default(),
            failed: OnceLock::new(),
        }
    }

    /// Reports events to `observe`.
    pub fn observed(self, observe: Observe) -> Self {
        Self { observe, ..self }
    }

    /// Changes the in-flight state, journals the resulting events, and answers once they are durable.
    async fn durably<R>(
        &self,
        change: impl FnOnce(&mut InFlight, Timestamp, &mut Vec<Event>) -> R + Send,
    ) -> Result<R, StoreError> {
        self.check()?;
        let (answer, written) = {
            let mut in_flight = self.in_flight.lock();
            let mut events = Vec::new();
            let answer = change(&mut in_flight, self.clock.now(), &mut events);
            let nudges = in_flight.take_nudges();
            let written = (!events.is_empty()).then(|| {
                let (news, commit) = (news(&events), self.observe.journalled(&events));
                (self.journal.append(events), news, commit)
            });
            drop(in_flight);
            self.idle.wake(&nudges.queues);
            if nudges.timers {
                self.timers.notify_one();
            }
            (answer, written)
        };
        if let Some((ack, news, commit)) = written {
            self.acknowledged(ack.await)?;
            commit.durable();
            self.followers.tell(&news);
        }
        Ok(answer)
    }
}

impl MemoryStore {
    /// Waits until earlier changes are durable: a crash must not lose state that a caller has read.
    async fn settled(&self) -> Result<(), StoreError> {
        self.check()?;
        self.acknowledged(self.journal.append(Vec::new()).await)
    }

    fn check(&self) -> Result<(), StoreError> {
        // Later writes are refused, even if the outcome of the failed one is unknown.
        self.failed.get().map_or(Ok(()), |error| Err(error.clone().not_applied()))
    }

    /// After one failed write the store refuses everything: memory can no longer be rebuilt from the archive (I12).
    fn acknowledged(&self, ack: Result<(), StoreError>) -> Result<(), StoreError> {
        ack.inspect_err(|error| {
            drop(self.failed.set(error.clone()));
            self.followers.close();
        })
    }
}

#[async_trait]
impl HotStore for MemoryStore {
    async fn learn(&self, ir: Arc<Ir>) -> Result<(), StoreError> {
        self.in_flight.lock().learn(ir);
        Ok(())
    }

    async fn accept(&self, run: NewRun) -> Result<Acceptance, StoreError> {
        let accepted = self.durably(|in_flight, now, out| in_flight.accept(run, now, out)).await??;
        if matches!(accepted, Acceptance::Existing(_)) {
            // The first acceptance may not be durable yet.
            self.settled().await?;
        }
        Ok(accepted)
    }

    async fn step(
        &self,
        settlements: Vec<Settlement>,
        want: &Want,
    ) -> Result<(Vec<Settled>, Vec<Task>), StoreError> {
        self.durably(|in_flight, now, out| {
            let settled = settlements.into_iter().map(|one| in_flight.settle(one, now, out)).collect();
            let tasks = in_flight.claim(want, now, out);
            for task in &tasks {
                self.observe.metrics().claimed_step(&task.queue, now.since(task.queued_at));
            }
            (settled, tasks)
        })
        .await
    }

    async fn work_ready(&self, want: &Want) {
        let woken = self.idle.line_up(want.queues.clone());
        // A task may have been queued between the caller's last look and its place among the idle workers.
        if self.in_flight.lock().has_work(want) {
            return;
        }
        // The sender lives in this store; a closed channel means that the store is going away.
        let _ = woken.await;
    }

    async fn held_task(&self, claim: &ClaimRef) -> Result<Option<Task>, StoreError> {
        self.check()?;
        Ok(self.in_flight.lock().held_task(claim))
    }

    async fn heartbeat(
        &self,
        claims: &[ClaimRef],
        lease: Option<Duration>,
    ) -> Result<Vec<ClaimStatus>, StoreError> {
        self.check()?;
        let mut in_flight = self.in_flight.lock();
        let now = self.clock.now();
        Ok(claims.iter().map(|claim| in_flight.heartbeat(claim, lease, now)).collect())
    }

    async fn progress(&self, claim: &ClaimRef, progress: Progress) -> Result<Settled, StoreError> {
        Ok(self.durably(|in_flight, now, out| in_flight.progress(claim, progress, now, out)).await??)
    }

    async fn command(&self, run: RunId, operation: Operation, command: Command) -> Result<(), StoreError> {
        match self
            .durably(|in_flight, now, out| in_flight.command(run, &operation, command, now, out))
            .await?
        {
            Some(Ok(Applied::Now)) => Ok(()),
            // The earlier call may not be durable yet.
            Some(Ok(Applied::Earlier)) => self.settled().await,
            Some(Err(refusal)) => Err(refusal.into()),
            None => {
                // The run may have just ended: its end must be in the archive before the caller reads there.
                self.settled().await?;
                Err(StoreError::UnknownRun(run))
            }
        }
    }

    async fn run_of_approval(&self, approval: &ApprovalId) -> Result<Option<RunId>, StoreError> {
        Ok(self.in_flight.lock().run_of_approval(approval))
    }

    async fn restore(&self, runs: Vec<Run>) -> Result<(), StoreError> {
        self.observe.taken_up(&runs);
        self.observe.metrics().taken_up(runs.len());
        self.durably(|in_flight, now, out| in_flight.restore(runs, now, out)).await
    }

    /// A run in memory is ahead of the archive, never behind it.
    async fn compare(&self, unfinished: &[Unfinished]) -> Result<Vec<RunId>, StoreError> {
        let in_flight = self.in_flight.lock();
        let runs = unfinished.iter().map(|unfinished| unfinished.run);
        Ok(runs.filter(|run| in_flight.run(*run).is_none()).collect())
    }

    /// Always true: no other process shares the store.
    async fn takes_turn(&self, _: &str, _: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn archived(&self) -> Result<(), StoreError> {
        self.settled().await
    }

    async fn fire_timers(&self) -> Result<(usize, Option<Timestamp>), StoreError> {
        let fired = self
            .durably(|in_flight, now, out| (in_flight.fire_due(now, out), in_flight.next_timer()))
            .await?;
        self.observe.metrics().timers_fired(fired.0);
        Ok(fired)
    }

    async fn timers_changed(&self) {
        self.timers.notified().await;
    }

    async fn reclaim(&self) -> Result<usize, StoreError> {
        let reclaimed = self.durably(|in_flight, now, out| in_flight.reclaim(now, out)).await?;
        self.observe.metrics().reclaimed(reclaimed);
        Ok(reclaimed)
    }

    async fn in_flight(&self, run: RunId) -> Result<bool, StoreError> {
        self.check()?;
        let found = self.in_flight.lock().run(run).is_some();
        if !found {
            self.settled().await?;
        }
        Ok(found)
    }

    async fn snapshot(&self, run: RunId) -> Result<Option<Run>, StoreError> {
        let found = self.in_flight.lock().run(run).cloned();
        self.settled().await?;
        Ok(found)
    }

    fn follow(&self, run: RunId) -> watch::Receiver<Change> {
        self.followers.follow(run)
    }

    async fn queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        Ok(self.in_flight.lock().depths())
    }

    async fn report_worker(&self, worker: &Worker, holds: Duration) -> Result<(), StoreError> {
        self.workers.report(worker.clone(), holds, self.clock.now());
        Ok(())
    }

    async fn sign_off(&self, worker: &str) -> Result<(), StoreError> {
        self.workers.sign_off(worker);
        Ok(())
    }

    async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        Ok(self.workers.list(self.clock.now()))
    }

    async fn size(&self) -> Result<Size, StoreError> {
        let in_flight = self.in_flight.lock();
        Ok(Size { runs: in_flight.len(), timers: in_flight.timers_len() })
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.check()
    }
}
