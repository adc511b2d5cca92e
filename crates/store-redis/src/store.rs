//! [`HotStore`] over Redis.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use switchyard_core::in_flight::{Acceptance, ClaimStatus, Command, Limits, NewRun, QueueDepth, Want};
use switchyard_core::ir::Ir;
use switchyard_core::run::{ClaimRef, Operation, Progress, Run, Settled, Settlement, Task};
use switchyard_core::{ApprovalId, Hash, RunId, Timestamp};
use switchyard_observe::Observe;
use switchyard_redis::{FencedLock, Taken};
use switchyard_store::{
    Archive, ArchiveMark, Change, Clock, HotStore, Size, StoreError, SystemClock, Unarchived, Unfinished,
    Worker,
};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::AbortHandle;

use crate::admin::RedisAdmin;
use crate::client::Client;
use crate::fast_path::batch::StepBatcher;
use crate::graphs::Graphs;
use crate::keys::Keys;
use crate::outbox::Shipper;
use crate::plain::SignalMover;
use crate::pubsub::{Listener, Waiters};
use crate::retry::RetryPolicy;
use crate::slow_path::{ReadSet, SettlementBatcher};

/// How often to read a run that changes while it is read.
const SNAPSHOT_LOOKS: u32 = 20;

/// How long Redis keeps the text of a definition after it was last stored.
const DEFINITIONS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Address and settings of the hot store in Redis.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// `redis://`, `rediss://` (TLS), `redis+unix://` or `redis+sentinel://`, with user and password if needed.
    pub url: String,
    /// The prefix of every key in Redis.
    pub prefix: String,
    pub limits: Limits,
    /// The functions whose tasks go to the stream that plain workers read; a name may end in `*`. Every process that
    /// shares a Redis must list the same functions.
    pub plain_functions: Vec<String>,
    /// How a submission is retried while Redis does not answer.
    pub retry: RetryPolicy,
    /// How long a change may wait for the archive before the outbox counts as stuck.
    pub stuck_after: Duration,
    /// Replaces the server's clock, in tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Receives metrics, logs and traces.
    pub observe: Observe,
}

impl RedisSettings {
    pub fn new(url: impl Into<String>) -> Self {
        let (prefix, limits, plain_functions, observe) = Default::default();
        let (retry, stuck_after) = (RetryPolicy::NONE, Duration::from_secs(30));
        let url = url.into();
        Self { url, prefix, limits, plain_functions, retry, stuck_after, clock: None, observe }
    }
}

/// The hot store in Redis. Any number of processes share one.
pub struct RedisStore {
    pub(crate) client: Client,
    /// A client that does not check the binding: only for finding out which archive Redis belongs to.
    pub(crate) unbound: Client,
    /// Identity and position of the archive when this store was opened.
    pub(crate) mark: ArchiveMark,
    pub(crate) keys: Keys,
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) limits: Limits,
    pub(crate) retry: RetryPolicy,
    pub(crate) graphs: Graphs,
    pub(crate) step_batcher: Arc<StepBatcher>,
    pub(crate) settlement_batcher: SettlementBatcher,
    /// Serializes the retries of this process's conflicting decisions.
    pub(crate) turns: AsyncMutex<()>,
    pub(crate) shipper: Shipper,
    pub(crate) signal_mover: SignalMover,
    pub(crate) observe: Observe,
    pub(crate) name: String,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    listening: AbortHandle,
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl RedisStore {
    /// Connects, and makes sure that Redis belongs to this archive. [`HotStore::restore`] writes unfinished runs of the
    /// archive that Redis lacks.
    pub async fn open(settings: RedisSettings, archive: Arc<dyn Archive>) -> Result<Self, StoreError> {
        let client = Client::connect(&settings.url, settings.observe.metrics().clone()).await?;
        let (unbound, mark) = (client.unbound(), archive.mark().await?);
        let keys = Keys::new(&settings.prefix, 0, 1).with_plain_functions(&settings.plain_functions);
        let waiters = Arc::new(Waiters::default());
        let listener = Listener::new(client.clone(), keys.clone(), archive.clone(), waiters.clone());
        let store = Self {
            graphs: Graphs::new(client.clone(), keys.clone(), settings.limits.attempt_default),
            listening: tokio::spawn(listener.listen_forever()).abort_handle(),
            name: format!("{:016x}", rand::random::<u64>()),
            step_batcher: Arc::default(),
            settlement_batcher: SettlementBatcher::default(),
            turns: AsyncMutex::new(()),
            shipper: Shipper::new(settings.stuck_after),
            signal_mover: SignalMover::default(),
            observe: settings.observe,
            limits: settings.limits,
            retry: settings.retry,
            clock: settings.clock,
            client,
            unbound,
            mark,
            keys,
            archive,
            waiters,
        };
        store.compare_archive().await?;
        store.client.binding().expect(store.keys.archive(), store.mark.clone());
        store.make_groups().await?;
        Ok(store)
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Admin queries on the same Redis.
    pub fn admin(&self) -> RedisAdmin {
        RedisAdmin::new(self.client.clone(), self.keys.clone(), self.clock.clone())
    }

    /// The current time of the scripts: the server's, or that of the injected clock.
    pub(crate) async fn now(&self) -> Result<Timestamp, StoreError> {
        if let Some(clock) = &self.clock {
            return Ok(clock.now());
        }
        let (seconds, micros): (i64, i64) = self.client.query(&redis::cmd("TIME")).await?;
        Ok(Timestamp::from_millis(seconds * 1_000 + micros / 1_000))
    }

    /// The current time of this machine, or of the injected clock.
    pub(crate) fn here(&self) -> Timestamp {
        self.clock.as_ref().map_or_else(|| SystemClock.now(), |clock| clock.now())
    }

    /// The time argument of a script; empty for the server's clock.
    pub(crate) fn time(&self) -> String {
        self.clock.as_ref().map_or_else(String::new, |clock| clock.now().as_millis().to_string())
    }
}

#[async_trait]
impl HotStore for RedisStore {
    async fn learn(&self, ir: Arc<Ir>) -> Result<(), StoreError> {
        self.with_retry(|| self.graphs.learn(ir.clone(), self.time())).await
    }

    async fn keep_definition(&self, hash: Hash, canonical: &str) -> Result<(), StoreError> {
        let (key, lasts) = (self.keys.definition(hash), DEFINITIONS_KEPT.as_secs());
        self.client.query(redis::cmd("SET").arg(key).arg(canonical).arg("EX").arg(lasts)).await
    }

    async fn kept_definition(&self, hash: Hash) -> Result<Option<Arc<str>>, StoreError> {
        let text: Option<String> =
            self.client.query(redis::cmd("GET").arg(self.keys.definition(hash))).await?;
        Ok(text.map(Into::into))
    }

    async fn accept(&self, run: NewRun) -> Result<Acceptance, StoreError> {
        self.take_in(run).await
    }

    async fn step(
        &self,
        settlements: Vec<Settlement>,
        want: &Want,
    ) -> Result<(Vec<Settled>, Vec<Task>), StoreError> {
        let (settled, tasks) = self.settle_and_claim(settlements, want).await?;
        for task in &tasks {
            // The two times are from two clocks: the difference is exact only if they agree.
            let waited = self.here().since(task.queued_at);
            self.observe.metrics().claimed_step(&task.queue, waited);
        }
        Ok((settled, tasks))
    }

    async fn work_ready(&self, want: &Want) {
        self.wait_for_work(want).await;
    }

    async fn held_task(&self, claim: &ClaimRef) -> Result<Option<Task>, StoreError> {
        self.read_held(claim).await
    }

    async fn heartbeat(
        &self,
        claims: &[ClaimRef],
        lease: Option<Duration>,
    ) -> Result<Vec<ClaimStatus>, StoreError> {
        self.keep_claims(claims, lease).await
    }

    async fn progress(&self, claim: &ClaimRef, progress: Progress) -> Result<Settled, StoreError> {
        let say = |in_flight: &mut switchyard_core::in_flight::InFlight, now, out: &mut Vec<_>| {
            in_flight.progress(claim, progress.clone(), now, out)
        };
        Ok(self.decide(ReadSet::run(claim.run), say).await??)
    }

    async fn command(&self, run: RunId, operation: Operation, command: Command) -> Result<(), StoreError> {
        self.carry_out(run, &operation, &command).await
    }

    async fn run_of_approval(&self, approval: &ApprovalId) -> Result<Option<RunId>, StoreError> {
        let run: Option<String> =
            self.client.query(redis::cmd("HGET").arg(self.keys.approval(approval)).arg("run_id")).await?;
        Ok(run.and_then(|run| run.parse().ok()))
    }

    async fn restore(&self, runs: Vec<Run>) -> Result<(), StoreError> {
        let count = runs.len();
        self.take_up(runs).await?;
        self.observe.metrics().taken_up(count);
        Ok(())
    }

    async fn compare(&self, unfinished: &[Unfinished]) -> Result<Vec<RunId>, StoreError> {
        self.forget_outlived(unfinished).await?;
        self.tell_missed_ends(unfinished).await?;
        self.find_lacking(unfinished).await
    }

    async fn takes_turn(&self, duty: &str, every: Duration) -> Result<bool, StoreError> {
        let lock = FencedLock::new(&self.client, self.keys.duty_lock(duty));
        let taken = lock.take(&self.name, self.time(), every, every).await?;
        Ok(matches!(taken, Taken::Ours { .. }))
    }

    async fn archived(&self) -> Result<(), StoreError> {
        self.catch_up().await
    }

    async fn fire_timers(&self) -> Result<(usize, Option<Timestamp>), StoreError> {
        let fired = self.fire_due().await?;
        self.observe.metrics().timers_fired(fired.0);
        Ok(fired)
    }

    async fn timers_changed(&self) {
        self.waiters.timers.notified().await;
    }

    async fn reclaim(&self) -> Result<usize, StoreError> {
        let reclaimed = self.reclaim_due().await?;
        self.observe.metrics().reclaimed(reclaimed);
        Ok(reclaimed)
    }

    async fn in_flight(&self, run: RunId) -> Result<bool, StoreError> {
        let phase: Option<String> =
            self.client.query(redis::cmd("HGET").arg(self.keys.run(run)).arg("phase")).await?;
        match phase.as_deref() {
            None => Ok(false),
            Some("ended") => {
                self.catch_up().await?;
                Ok(false)
            }
            Some(_) => Ok(true),
        }
    }

    async fn snapshot(&self, run: RunId) -> Result<Option<Run>, StoreError> {
        for _ in 0..SNAPSHOT_LOOKS {
            match self.read_run(run).await? {
                None => return Ok(None),
                Some(found) if found.record.has_ended() => {
                    self.catch_up().await?;
                    return Ok(None);
                }
                Some(found) => {
                    if let Some(stored) = self.stored_whole(found).await? {
                        return Ok(Some(stored.stored_run.run));
                    }
                }
            }
        }
        Err(StoreError::unavailable(format!("{run} changes faster than it can be read; try again")))
    }

    fn follow(&self, run: RunId) -> watch::Receiver<Change> {
        self.waiters.follow(run)
    }

    async fn queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        self.look_at_queues().await
    }

    async fn report_worker(&self, worker: &Worker, holds: Duration) -> Result<(), StoreError> {
        self.put_worker(worker, holds).await
    }

    async fn sign_off(&self, worker: &str) -> Result<(), StoreError> {
        self.admin().sign_off(worker).await
    }

    async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        self.list_workers().await
    }

    fn is_plain(&self, queue: &str) -> bool {
        self.keys.is_plain(queue)
    }

    async fn signal_again(&self, signal: &str) -> Result<(), StoreError> {
        self.push_again(signal).await
    }

    async fn size(&self) -> Result<Size, StoreError> {
        let runs = self.client.query(redis::cmd("SCARD").arg(self.keys.runs())).await?;
        let timers = self.client.query(redis::cmd("ZCARD").arg(self.keys.timers())).await?;
        Ok(Size { runs, timers })
    }

    async fn unarchived(&self) -> Result<Option<Unarchived>, StoreError> {
        self.behind().await.map(Some)
    }

    /// Writes a probe key: a replica, or a server without memory, refuses it.
    async fn ready(&self) -> Result<(), StoreError> {
        self.client.query(redis::cmd("SET").arg(self.keys.probe()).arg(1).arg("PX").arg(1)).await
    }
}
