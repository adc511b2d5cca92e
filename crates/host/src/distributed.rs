//! Switchyard in many processes: the Redis hot store over a shared archive.
//!
//! Every process opens the same pair, takes part in the duties, and executes tasks if its options say so. A process
//! may stop at any moment: other processes take over its tasks when its leases run out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_postgres::{PostgresArchive, PostgresCas, Target};
use switchyard_archive_sqlite::{DataFolder, Notice};
use switchyard_observe::Observe;
use switchyard_runtime::duties::PlainSettings;
use switchyard_runtime::kinds::{NodeSettings, Services};
use switchyard_runtime::{
    Engine, EngineError, Handlers, Host, HostOptions, Recovered, WorkerSettings, duties,
};
use switchyard_store::{Archive, Cas, RetentionPolicy, StoreError, SystemClock};
use switchyard_store_redis::{ConsumerMonitor, LivePods, MonitorSettings, RedisSettings, RedisStore};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::registration::Registration;

/// How often Redis is compared with the archive. A run that Redis has lost stands still for about this long.
const RECOVER_EVERY: Duration = Duration::from_secs(3);

/// How often the duty looks for tasks that plain workers have read and neither claimed nor settled.
const TAKE_BACK_EVERY: Duration = Duration::from_secs(5);

/// The location of the archive and of large payloads.
#[derive(Clone, Debug)]
pub enum ArchiveAt {
    /// For any number of processes.
    Postgres(Box<Target>),
    /// For one process that has a folder to itself; Redis is still shared with plain workers.
    Folder(PathBuf),
}

/// How to open the pair.
#[derive(Clone, Debug)]
pub struct Options {
    pub redis: RedisSettings,
    pub archive: ArchiveAt,
    /// The storage of large payloads; `None` keeps them beside the archive.
    pub cas: Option<Arc<dyn Cas>>,
    /// The worker of this process; `None` if it executes no tasks.
    pub worker: Option<WorkerSettings>,
    pub nodes: NodeSettings,
    pub handlers: Handlers,
    /// Which ended runs are kept; all of them if `None`.
    pub retention: Option<RetentionPolicy>,
    /// Settings of the monitor for consumers of the group that reads tasks.
    pub monitor: MonitorSettings,
    /// The list of live worker pods, when running on Kubernetes.
    pub pods: Option<Arc<dyn LivePods>>,
    /// Settings for plain workers.
    pub plain: PlainSettings,
    /// Receives metrics, logs and traces.
    pub observe: Observe,
    /// Receives progress and warnings while a data folder is opened.
    pub notice: Notice,
}

/// A process's connection to Redis and the archive. Nothing runs until [`Distributed::work`] is called.
#[derive(Debug)]
pub struct Distributed {
    host: Host,
    hot: Arc<RedisStore>,
    recovered: Recovered,
    worker: Option<WorkerSettings>,
    retention: Option<RetentionPolicy>,
    monitor: ConsumerMonitor,
    registration: Registration,
    plain: PlainSettings,
}

impl Distributed {
    /// Connects to both, and restores the unfinished runs of the archive that Redis lacks.
    pub async fn open(options: Options) -> Result<Self, EngineError> {
        let (archive, beside) = open_archive(&options.archive, options.notice).await?;
        let cas = options.cas.unwrap_or(beside);
        let redis = RedisSettings { observe: options.observe.clone(), ..options.redis };
        let hot = Arc::new(RedisStore::open(redis, archive.clone()).await?);
        let engine = Engine::new(hot.clone(), archive, cas, Arc::new(SystemClock));
        let engine = engine.observed(options.observe.clone());
        let recovered = engine.recover().await?;
        let monitor = ConsumerMonitor {
            admin: hot.admin(),
            metrics: options.observe.metrics().clone(),
            pods: options.pods,
            settings: options.monitor,
        };
        let host = Host::new(engine, options.handlers, options.nodes, options.observe)?;
        let Options { worker, retention, plain, .. } = options;
        Ok(Self {
            host,
            hot,
            recovered,
            worker,
            retention,
            monitor,
            registration: Registration::default(),
            plain,
        })
    }

    pub fn engine(&self) -> &Engine {
        self.host.engine()
    }

    /// The services that tasks are executed with, for callers that execute tasks outside the worker.
    pub fn services(&self) -> &Arc<Services> {
        self.host.services()
    }

    /// The unfinished runs that Redis lacked when it was opened.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Starts the duties, and the worker if there is one. The receiver holds the reason while the store does not
    /// answer the worker.
    pub fn work(&self) -> watch::Receiver<Option<String>> {
        let stop = self.host.stopping();
        let mut further = JoinSet::new();
        further.spawn(self.hot.clone().ship_forever(stop.clone()));
        further.spawn(self.hot.clone().tidy_forever(stop.clone()));
        further.spawn(duties::recover_forever(self.engine().clone(), RECOVER_EVERY, stop.clone()));
        further.spawn(duties::move_signals(
            self.hot.clone(),
            self.hot.clone(),
            self.services().clone(),
            self.plain,
            stop.clone(),
        ));
        let take_back =
            duties::take_back_forever(self.hot.clone(), self.plain, TAKE_BACK_EVERY, stop.clone());
        further.spawn(take_back);
        further.spawn(self.monitor.clone().clean_up_forever(stop.clone()));
        further.spawn(self.monitor.clone().watch_forever(stop.clone()));
        let (worker, retention) = (self.worker.clone(), self.retention);
        // `Registration` reports the worker instead.
        let options = HostOptions { worker, retention, reports_worker: false, further };
        let trouble = self.host.work(options);
        if let (Some(worker), Some(busy)) = (&self.worker, self.host.busy()) {
            self.registration.begin(self.monitor.admin.clone(), worker, busy);
        }
        trouble
    }

    /// Stops claiming, lets tasks finish for `grace`, hands back the rest, ends the duties, and leaves the group.
    pub async fn shut_down(self, grace: Duration) {
        self.host.shut_down(grace).await;
        if let Some(worker) = &self.worker {
            self.registration.end(&self.monitor, &worker.name).await;
        }
    }
}

/// Opens an archive and the CAS beside it.
pub async fn open_archive(
    at: &ArchiveAt,
    notice: Notice,
) -> Result<(Arc<dyn Archive>, Arc<dyn Cas>), StoreError> {
    match at {
        ArchiveAt::Postgres(target) => {
            let archive = PostgresArchive::open(Target::clone(target)).await?;
            Ok((Arc::new(archive), Arc::new(PostgresCas::open(Target::clone(target)).await?)))
        }
        ArchiveAt::Folder(path) => {
            let folder = DataFolder::open_telling(path, notice)?;
            Ok((Arc::new(folder.archive()?), Arc::new(folder.cas())))
        }
    }
}
