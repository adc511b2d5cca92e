//! Switchyard in one process: the memory hot store over the SQLite archive of a data folder.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use switchyard_host::embedded::{Embedded, Options};
//!
//! let switchyard = Embedded::open(Options::new("./switchyard-data")).await?;
//! switchyard.work();
//! // switchyard.engine().submit(…)
//! switchyard.shut_down(std::time::Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```

pub use switchyard_archive_sqlite::{Notice, RunFault, Salvaged, Surveyed};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::Limits;
use switchyard_observe::Observe;
use switchyard_runtime::kinds::{NodeSettings, Services};
use switchyard_runtime::{
    ApiKeys, Engine, EngineError, Handlers, History, Host, HostOptions, Payloads, Recovered, WorkerSettings,
};
use switchyard_store::{Check, Clock, RetentionPolicy, StoreError, SystemClock};
use switchyard_store_memory::MemoryStore;
use tokio::sync::watch;

/// How to open a data folder.
#[derive(Clone, Debug)]
pub struct Options {
    pub data: PathBuf,
    /// Tasks executed at once.
    pub slots: usize,
    pub nodes: NodeSettings,
    pub handlers: Handlers,
    pub limits: Limits,
    /// Leaves `function` tasks to workers outside this process.
    pub leave_functions: bool,
    /// Which ended runs are kept; all of them if `None`.
    pub retention: Option<RetentionPolicy>,
    /// How long a handler that observes cancellation may take to stop.
    pub stop_grace: Duration,
    pub clock: Arc<dyn Clock>,
    /// Receives metrics, logs and traces.
    pub observe: Observe,
    /// Receives progress and warnings while the folder is opened.
    pub notice: Notice,
}

impl Options {
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            slots: 64,
            nodes: NodeSettings::default(),
            handlers: Handlers::with_builtins(),
            limits: Limits::default(),
            leave_functions: false,
            retention: None,
            stop_grace: Duration::from_secs(10),
            clock: Arc::new(SystemClock),
            observe: Observe::default(),
            notice: Notice::default(),
        }
    }
}

/// An open data folder. Nothing runs in it until [`Embedded::work`] is called.
#[derive(Debug)]
pub struct Embedded {
    data: PathBuf,
    host: Host,
    recovered: Recovered,
    worker: WorkerSettings,
    retention: Option<RetentionPolicy>,
}

impl Embedded {
    /// Locks the folder for this process, and restores every unfinished run in it.
    pub async fn open(options: Options) -> Result<Self, EngineError> {
        let (data, notice) = (options.data.clone(), options.notice);
        // A folder that was not closed cleanly is checked first, which may take seconds.
        let opening = tokio::task::spawn_blocking(move || {
            let folder = DataFolder::open_telling(data, notice)?;
            Ok::<_, StoreError>((folder.archive()?, folder.cas()))
        });
        let opened =
            opening.await.unwrap_or_else(|e| Err(StoreError::unavailable(format!("interrupted: {e}"))));
        let (archive, cas) = opened.map(|(archive, cas)| (Arc::new(archive), Arc::new(cas)))?;
        let clock = options.clock.clone();
        let observe = options.observe;
        let hot = MemoryStore::new(archive.clone(), clock.clone(), options.limits);
        let hot = Arc::new(hot.observed(observe.clone()));
        let engine = Engine::new(hot, archive, cas, clock).observed(observe.clone());
        let recovered = engine.recover().await?;
        let host = Host::new(engine, options.handlers, options.nodes, observe)?;
        let worker =
            WorkerSettings { stop_grace: options.stop_grace, ..WorkerSettings::embedded(options.slots) };
        let worker = if options.leave_functions { worker.without_functions() } else { worker };
        Ok(Self { data: options.data, host, recovered, worker, retention: options.retention })
    }

    /// The id of the data folder, which does not depend on its path.
    pub fn id(&self) -> Option<String> {
        folder_id(&self.data)
    }

    pub fn engine(&self) -> &Engine {
        self.host.engine()
    }

    /// The services that tasks are executed with, for callers that execute tasks outside the worker.
    pub fn services(&self) -> &Arc<Services> {
        self.host.services()
    }

    /// The unfinished runs that were found when the folder was opened.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Starts the worker and the duties. The receiver holds the reason while the store does not answer.
    pub fn work(&self) -> watch::Receiver<Option<String>> {
        let worker = Some(self.worker.clone());
        let retention = self.retention;
        self.host.work(HostOptions { worker, retention, reports_worker: true, ..HostOptions::default() })
    }

    /// Lets tasks finish for `grace`, hands back the rest, and releases the folder.
    pub async fn shut_down(self, grace: Duration) {
        self.host.shut_down(grace).await;
    }
}

/// The API keys of a data folder, which can be changed while another process works in it.
pub fn keys(data: impl Into<PathBuf>) -> Result<ApiKeys, StoreError> {
    let archive = DataFolder::archive_for_keys(data)?;
    Ok(ApiKeys::new(Arc::new(archive), Arc::new(SystemClock)))
}

/// The id of a data folder, which does not depend on its path; `None` before a process has worked in it.
pub fn folder_id(data: &Path) -> Option<String> {
    DataFolder::id(data)
}

/// Checks a data folder; another process may work in it. `deep` also checks its archive, which may take long.
pub fn examine(data: &Path, deep: bool, notice: &Notice) -> Vec<Check> {
    DataFolder::examine(data, deep, notice)
}

/// Reports which histories of a folder can be read, even if the folder cannot be opened.
pub fn survey(data: &Path) -> Result<Surveyed, StoreError> {
    DataFolder::survey(data)
}

/// Creates a new folder with all intact data of a damaged one.
pub async fn salvage(from: &Path, to: &Path, notice: Notice) -> Result<Salvaged, StoreError> {
    DataFolder::salvage(from, to, notice).await
}

/// Opens the history of a data folder for reading while another process works in it.
pub fn peek(data: impl Into<PathBuf>) -> Result<History, StoreError> {
    let folder = DataFolder::peek(data.into())?;
    let payloads = Payloads::new(Arc::new(folder.cas()));
    Ok(History::new(Arc::new(folder.archive()?), payloads))
}
