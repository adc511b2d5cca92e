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
    /// `function` tasks are left to workers outside this process.
    pub leave_functions: bool,
    /// What is kept of runs that have ended; all of it, if not given.
    pub retention: Option<RetentionPolicy>,
    /// How long a handler that listens for requests to stop may take to do so.
    pub stop_grace: Duration,
    pub clock: Arc<dyn Clock>,
    /// Who is told what happens.
    pub observe: Observe,
    /// Who hears, while the folder is opened, what takes long and what is not as it should be.
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
    /// Takes the folder for this process alone, and takes up every unfinished run in it.
    pub async fn open(options: Options) -> Result<Self, EngineError> {
        let (data, notice) = (options.data.clone(), options.notice);
        // A folder that was not closed in order is checked first, which may take seconds.
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

    /// What its folder is called, wherever it is mounted.
    pub fn id(&self) -> Option<String> {
        folder_id(&self.data)
    }

    pub fn engine(&self) -> &Engine {
        self.host.engine()
    }

    /// What tasks are executed with; for those who execute some outside this process.
    pub fn services(&self) -> &Arc<Services> {
        self.host.services()
    }

    /// The unfinished runs that were found.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Starts the worker and the duties. Tells what keeps the store from answering, as long as something does.
    pub fn work(&self) -> watch::Receiver<Option<String>> {
        let worker = Some(self.worker.clone());
        let retention = self.retention;
        self.host.work(HostOptions { worker, retention, reports_worker: true, ..HostOptions::default() })
    }

    /// Lets tasks finish for `grace`, hands back the rest, and leaves the folder to the next process.
    pub async fn shut_down(self, grace: Duration) {
        self.host.shut_down(grace).await;
    }
}

/// The API keys of a data folder, which can be changed while another process works in it.
pub fn keys(data: impl Into<PathBuf>) -> Result<ApiKeys, StoreError> {
    let archive = DataFolder::archive_for_keys(data)?;
    Ok(ApiKeys::new(Arc::new(archive), Arc::new(SystemClock)))
}

/// What a data folder is called, wherever it is mounted; `None` before a process has worked in it.
pub fn folder_id(data: &Path) -> Option<String> {
    DataFolder::id(data)
}

/// Whether a data folder is in order; another process may work in it. With `deep` its archive is checked for as long as that takes.
pub fn examine(data: &Path, deep: bool, notice: &Notice) -> Vec<Check> {
    DataFolder::examine(data, deep, notice)
}

/// What can be read of the histories in a folder that need not open.
pub fn survey(data: &Path) -> Result<Surveyed, StoreError> {
    DataFolder::survey(data)
}

/// Makes a new folder with everything that is whole in a damaged one.
pub async fn salvage(from: &Path, to: &Path, notice: Notice) -> Result<Salvaged, StoreError> {
    DataFolder::salvage(from, to, notice).await
}

/// What can be read in a data folder while another process works in it.
pub fn peek(data: impl Into<PathBuf>) -> Result<History, StoreError> {
    let folder = DataFolder::peek(data.into())?;
    let payloads = Payloads::new(Arc::new(folder.cas()));
    Ok(History::new(Arc::new(folder.archive()?), payloads))
}
