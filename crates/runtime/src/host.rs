//! The part of one process: its worker, if it has one, and its duties.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchyard_observe::Observe;
use switchyard_store::{RetentionPolicy, StoreError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::kinds::{NodeSettings, Services};
use crate::{Busy, Engine, EngineError, Handlers, WorkerPool, WorkerSettings, duties};

/// How often leases and limits of claims are checked: an attempt exceeds its limit by at most about this.
const RECLAIM_EVERY: Duration = Duration::from_secs(1);

/// How often the retention duty makes a pass.
const RETAIN_EVERY: Duration = Duration::from_secs(600);

/// How often operations that are a day old are removed.
const FORGET_OPERATIONS_EVERY: Duration = Duration::from_secs(3600);

/// How often bulk jobs are looked for.
const BULK_EVERY: Duration = Duration::from_secs(1);

/// The parts of a host besides the duties that every store needs.
#[derive(Debug, Default)]
pub struct HostOptions {
    pub worker: Option<WorkerSettings>,
    /// Which ended runs are kept; all of them if `None`.
    pub retention: Option<RetentionPolicy>,
    /// Whether the generic duty reports the worker. A pair of stores that reports its workers itself sets this to
    /// false.
    pub reports_worker: bool,
    /// Additional duties of a store; they end with [`Host::stopping`].
    pub further: JoinSet<()>,
}

/// The worker and the duties of one process. Nothing runs until [`Host::work`] is called.
#[derive(Debug)]
pub struct Host {
    engine: Engine,
    services: Arc<Services>,
    stop: CancellationToken,
    at_work: Mutex<Option<AtWork>>,
}

/// The tasks that [`Host::work`] started.
#[derive(Debug)]
struct AtWork {
    pool: Option<WorkerPool>,
    duties: JoinSet<()>,
}

impl Host {
    pub fn new(
        engine: Engine,
        handlers: Handlers,
        nodes: NodeSettings,
        observe: Observe,
    ) -> Result<Self, EngineError> {
        let services = Services::new(
            nodes,
            handlers,
            engine.catalog().clone(),
            engine.archive.clone(),
            engine.payloads().clone(),
            engine.clock().clone(),
        )
        .map_err(|error| StoreError::unavailable(format!("the HTTP client cannot be set up: {error}")))?;
        let services = Arc::new(Services { observe, ..services });
        Ok(Self { engine, services, stop: CancellationToken::new(), at_work: Mutex::new(None) })
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The services that tasks are executed with, for callers that execute tasks elsewhere.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Cancelled when the host stops; the additional duties of a store listen to it.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Starts the duties, and the worker if there is one. The receiver holds the reason while the store does not
    /// answer the worker.
    pub fn work(&self, options: HostOptions) -> watch::Receiver<Option<String>> {
        let (engine, stop) = (&self.engine, &self.stop);
        let mut duties = options.further;
        duties.spawn(duties::keep_time(engine.clone(), stop.clone()));
        duties.spawn(duties::keep_schedules(engine.clone(), stop.clone()));
        duties.spawn(duties::reclaim_forever(engine.clone(), RECLAIM_EVERY, stop.clone()));
        duties.spawn(duties::forget_operations_forever(
            engine.clone(),
            FORGET_OPERATIONS_EVERY,
            stop.clone(),
        ));
        duties.spawn(duties::work_bulk_forever(engine.clone(), BULK_EVERY, stop.clone()));
        if let Some(policy) = options.retention {
            duties.spawn(duties::retain_forever(engine.clone(), policy, RETAIN_EVERY, stop.clone()));
        }
        let start = |worker| WorkerPool::start(engine.hot.clone(), self.services.clone(), worker);
        let pool = options.worker.as_ref().map(start);
        if let (true, Some(worker), Some(pool)) = (options.reports_worker, options.worker, &pool) {
            let stop = stop.clone();
            duties.spawn(duties::report_worker_forever(engine.clone(), worker, pool.busy(), stop));
        }
        let trouble = pool.as_ref().map_or_else(|| watch::channel(None).1, WorkerPool::trouble);
        *self.at_work.lock() = Some(AtWork { pool, duties });
        trouble
    }

    /// The load of the worker, once there is one.
    pub fn busy(&self) -> Option<Busy> {
        self.at_work.lock().as_ref()?.pool.as_ref().map(WorkerPool::busy)
    }

    /// Stops claiming, lets tasks finish for `grace`, hands back the rest, and ends the duties.
    pub async fn shut_down(self, grace: Duration) {
        let at_work = self.at_work.lock().take();
        if let Some(AtWork { pool, mut duties }) = at_work {
            if let Some(pool) = pool {
                pool.shut_down(grace).await;
            }
            // After the worker, because its last settlements may need the duties.
            self.stop.cancel();
            while duties.join_next().await.is_some() {}
        }
        self.services.observe.shut_down().await;
    }
}
