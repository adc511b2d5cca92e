//! A pool of slots that are started and stopped together.

use std::sync::Arc;
use std::time::Duration;

use switchyard_store::{HotStore, Want};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::heartbeat::{Holding, keep_claims};
use super::slot::Slot;
use crate::kinds::Services;

/// How often a worker that stops tells how far it is.
const TELL_EVERY: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// The name of the worker in histories.
    pub name: Arc<str>,
    /// Tasks executed at once.
    pub slots: usize,
    /// The types of task that the worker takes.
    pub queues: Arc<[Arc<str>]>,
    /// How long a claim lasts without a heartbeat; if `None`, as long as the process.
    pub lease: Option<Duration>,
    /// How often heartbeats are sent for long tasks, which also fetch requests to stop.
    pub keep_every: Duration,
    /// How long a handler that observes cancellation may take to stop.
    pub stop_grace: Duration,
    /// How often a worker that stops tells how far it is.
    pub tell_every: Duration,
}

/// Every type of task that the runtime itself can execute.
const ALL_QUEUES: [&str; 8] =
    ["builtin", "transform", "timer", "hitl", "flow", "http", "command", "function*"];

impl WorkerSettings {
    /// Settings for a worker in the same process as its store.
    pub fn embedded(slots: usize) -> Self {
        Self {
            name: format!("embedded-{}", std::process::id()).into(),
            slots,
            queues: ALL_QUEUES.map(Into::into).into(),
            lease: None,
            keep_every: Duration::from_millis(250),
            stop_grace: Duration::from_secs(10),
            tell_every: TELL_EVERY,
        }
    }

    /// Settings for a worker in a process of its own. Other workers get its tasks when it has been silent for
    /// `lease`.
    pub fn distributed(name: impl Into<Arc<str>>, slots: usize, lease: Duration) -> Self {
        // Three heartbeats may be lost before the lease is.
        let keep_every = (lease / 4).min(Duration::from_secs(5));
        Self { name: name.into(), lease: Some(lease), keep_every, ..Self::embedded(slots) }
    }

    /// Takes only tasks of these types. `function` stands for nodes with a `queue`: functions of other programs are
    /// left to workers that serve them.
    pub fn of_types(mut self, types: &[String]) -> Self {
        self.queues =
            types.iter().map(|kind| if kind == "function" { "function.*" } else { kind }.into()).collect();
        self
    }

    /// Leaves `function` tasks to workers outside this process. Built-in functions have a queue of their own.
    pub fn without_functions(mut self) -> Self {
        self.queues = self.queues.iter().filter(|queue| !queue.starts_with("function")).cloned().collect();
        self
    }
}

/// The state that the slots of a worker share.
pub(super) struct Shared {
    pub(super) hot: Arc<dyn HotStore>,
    pub(super) services: Arc<Services>,
    pub(super) want: Want,
    /// The empty request, for a call that only settles.
    pub(super) nothing: Want,
    /// Stops claiming.
    pub(super) stop: CancellationToken,
    /// Hands back the tasks in progress.
    pub(super) hand_back: CancellationToken,
    pub(super) stop_grace: Duration,
    /// The error while the store does not answer.
    pub(super) trouble: watch::Sender<Option<String>>,
}

/// The load of a worker.
#[derive(Clone, Debug)]
pub struct Busy(Arc<[Arc<Holding>]>);

impl Busy {
    /// The number of slots that hold a task.
    pub fn slots(&self) -> usize {
        self.0.iter().filter(|holding| holding.is_held()).count()
    }
}

/// A running worker.
pub struct WorkerPool {
    shared: Arc<Shared>,
    slots: JoinSet<()>,
    busy: Busy,
    tell_every: Duration,
    // A set with one task, which is aborted even if this pool is dropped without a shutdown.
    keeper: JoinSet<()>,
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

impl WorkerPool {
    pub fn start(hot: Arc<dyn HotStore>, services: Arc<Services>, settings: &WorkerSettings) -> Self {
        let want = Want {
            worker: settings.name.clone(),
            queues: settings.queues.clone(),
            max: 1,
            lease: settings.lease,
        };
        let shared = Arc::new(Shared {
            hot,
            services,
            nothing: Want::nothing(settings.name.clone()),
            want,
            stop: CancellationToken::new(),
            hand_back: CancellationToken::new(),
            stop_grace: settings.stop_grace,
            trouble: watch::Sender::new(None),
        });
        let holdings: Vec<Arc<Holding>> = (0..settings.slots.max(1)).map(|_| Arc::default()).collect();
        let mut slots = JoinSet::new();
        for holding in &holdings {
            slots.spawn(Slot::new(shared.clone(), holding.clone()).work());
        }
        let mut keeper = JoinSet::new();
        keeper.spawn(keep_claims(shared.hot.clone(), holdings.clone(), settings.lease, settings.keep_every));
        Self { shared, slots, busy: Busy(holdings.into()), tell_every: settings.tell_every, keeper }
    }

    pub fn busy(&self) -> Busy {
        self.busy.clone()
    }

    /// The receiver holds the reason while the store does not answer.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.shared.trouble.subscribe()
    }

    /// Stops the worker in phases: it claims no more tasks, lets tasks finish for `grace`, and then hands back the
    /// rest.
    pub async fn shut_down(mut self, grace: Duration) {
        self.shared.stop.cancel();
        tracing::info!(phase = 1, running = self.busy.slots(), "stopping: no further task is claimed");
        if !self.finish_within(grace).await {
            let running = self.busy.slots();
            tracing::warn!(phase = 2, running, "the time is over: what still runs is handed back");
            self.shared.hand_back.cancel();
            while self.slots.join_next().await.is_some() {}
        }
        // Awaited, because the next owner may need the resources that the keeper holds.
        self.keeper.shutdown().await;
        tracing::info!(phase = 3, "every task is finished or handed back");
    }

    /// Waits until every slot is done; returns whether that was in time. Logs progress, for the operator of a long
    /// stop.
    async fn finish_within(&mut self, grace: Duration) -> bool {
        let begun = tokio::time::Instant::now();
        let (over, at_first) = (begun + grace, self.busy.slots());
        loop {
            let now = tokio::time::Instant::now();
            let running = self.busy.slots();
            tracing::info!(
                phase = 2,
                running,
                finished = at_first.saturating_sub(running),
                elapsed_s = (now - begun).as_secs(),
                left_s = (over - now).as_secs(),
                "tasks finish"
            );
            match self.slots_end_before(over.min(now + self.tell_every)).await {
                true => return true,
                false if tokio::time::Instant::now() >= over => return false,
                false => {}
            }
        }
    }

    async fn slots_end_before(&mut self, moment: tokio::time::Instant) -> bool {
        loop {
            match tokio::time::timeout_at(moment, self.slots.join_next()).await {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}
