//! The stores of a process that serves or works: its own data folder, or a shared Redis and archive.

use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_postgres::{PostgresArchive, PostgresCas, Target, migrate};
use switchyard_core::ir::queue_name;
use switchyard_host::distributed::{ArchiveAt, Distributed, Options};
use switchyard_host::embedded::Embedded;
use switchyard_runtime::duties::PlainSettings;
use switchyard_runtime::kinds::Services;
use switchyard_runtime::{ApiKeys, Engine, Handlers, History, Payloads, Recovered, WorkerSettings};
use switchyard_store::{Archive, Cas, SystemClock};
use switchyard_store_redis::{
    CleanupPolicy, LivePods, MonitorSettings, RedisAdmin, RedisSettings, RetryPolicy,
};
use tokio::sync::watch;

use crate::errors::Failure;
use crate::observe;
use crate::optional;
use crate::settings::Settings;
use crate::store;
use crate::waiting;

/// An open pair of stores.
#[derive(Debug)]
pub(crate) enum Stores {
    Folder(Box<Embedded>),
    Shared(Box<Distributed>),
}

/// Whether a process serves the API, executes tasks, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Serves the API and executes all tasks except functions of other programs.
    All,
    Serving,
    Working,
}

impl Stores {
    /// Opens the stores that the settings name: Redis if it is set, else the data folder.
    pub(crate) async fn open(settings: &Settings, role: Role) -> Result<Self, Failure> {
        match redis(settings)? {
            Some(redis) => Ok(Self::Shared(Box::new(open_shared(settings, redis, role).await?))),
            None if role == Role::All => {
                if settings.cas.is_some() {
                    return Err(Failure::usage("cas.url is for processes that share a Redis")
                        .hint("without one, large payloads lie in the data folder"));
                }
                Ok(Self::Folder(Box::new(store::open(settings).await?)))
            }
            None => Err(Failure::usage("processes that share the work need a Redis to share it through")
                .hint(
                    "name it with --redis URL or REDIS_URL; `switchyard up` does everything in one process",
                )),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        match self {
            Self::Folder(store) => store.engine(),
            Self::Shared(store) => store.engine(),
        }
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        match self {
            Self::Folder(store) => store.services(),
            Self::Shared(store) => store.services(),
        }
    }

    pub(crate) fn recovered(&self) -> &Recovered {
        match self {
            Self::Folder(store) => store.recovered(),
            Self::Shared(store) => store.recovered(),
        }
    }

    /// The id of the data folder, by which clients recognize it.
    pub(crate) fn id(&self) -> Option<String> {
        match self {
            Self::Folder(store) => store.id(),
            Self::Shared(_) => None,
        }
    }

    pub(crate) fn work(&self) -> watch::Receiver<Option<String>> {
        match self {
            Self::Folder(store) => store.work(),
            Self::Shared(store) => store.work(),
        }
    }

    /// Whether to wait for a store that does not answer: a shared Redis or Postgres comes back.
    pub(crate) fn waits_for_its_store(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    pub(crate) async fn shut_down(self, grace: Duration) {
        match self {
            Self::Folder(store) => store.shut_down(grace).await,
            Self::Shared(store) => store.shut_down(grace).await,
        }
    }
}

async fn open_shared(settings: &Settings, redis: RedisSettings, role: Role) -> Result<Distributed, Failure> {
    let archive = match postgres(settings)? {
        Some(target) => ArchiveAt::Postgres(Box::new(target)),
        None if role == Role::All => ArchiveAt::Folder(settings.data.clone()),
        None => {
            return Err(Failure::usage(
                "processes that share the work need a Postgres to share the history in",
            )
            .hint("name it with --postgres URL or SWITCHYARD_POSTGRES"));
        }
    };
    let options = Options {
        redis,
        archive,
        cas: cas(settings)?,
        worker: worker(settings, role)?,
        nodes: settings.nodes(),
        handlers: Handlers::with_builtins(),
        retention: settings.retention(),
        monitor: monitor_settings(settings),
        pods: pods(settings).await?,
        plain: PlainSettings { lease: settings.plain_lease },
        observe: observe::observe(settings)?,
        notice: store::notice(),
    };
    waiting::for_stores(settings).await?;
    if let ArchiveAt::Postgres(target) = &options.archive {
        migrate(target).await?;
    }
    Distributed::open(options).await.map_err(|error| store::refused(error, settings))
}

/// The store of large payloads, if they are not kept with the history.
fn cas(settings: &Settings) -> Result<Option<Arc<dyn Cas>>, Failure> {
    match settings.cas.as_deref() {
        None => Ok(None),
        Some("postgres") if settings.postgres.is_some() => Ok(None),
        Some("postgres") => Err(Failure::usage("cas.url is `postgres`, and no Postgres is named")),
        Some(url) => optional::object_cas(url).map(Some),
    }
}

/// The Redis settings; `None` if Redis is not set. A Postgres without Redis is an error.
fn redis(settings: &Settings) -> Result<Option<RedisSettings>, Failure> {
    match &settings.redis {
        Some(url) => {
            let prefix = settings.redis_prefix.clone().unwrap_or_default();
            let limits = store::limits(settings);
            let retry = RetryPolicy {
                retries: settings.submit_retries,
                delay: settings.submit_retry_delay.0,
                backoff: settings.submit_retry_backoff.0,
            };
            let (stuck_after, plain_functions) = (settings.stores_stuck_after, plain_functions(settings)?);
            let settings = RedisSettings::new(url.reveal());
            Ok(Some(RedisSettings { prefix, limits, plain_functions, retry, stuck_after, ..settings }))
        }
        None if settings.postgres.is_some() => {
            Err(Failure::usage("a Postgres is named, and no Redis for what is in flight")
                .hint("name one with --redis URL or REDIS_URL"))
        }
        None => Ok(None),
    }
}

/// The functions that plain Redis workers serve.
fn plain_functions(settings: &Settings) -> Result<Vec<String>, Failure> {
    let Some(list) = &settings.plain_functions else { return Ok(Vec::new()) };
    let functions: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    match functions.iter().find(|name| !queue_name::is_function_pattern(name)) {
        Some(bad) => Err(Failure::usage(format!("plain.functions: `{bad}` is not the name of a function"))
            .hint("such as `greet,mail.*`, or `*` for all functions")),
        None => Ok(functions),
    }
}

/// The idle time that a consumer is allowed beyond the longest time of a task.
const IDLE_BEYOND: Duration = Duration::from_secs(300);

/// The settings of the monitor of the consumer group.
pub(crate) fn monitor_settings(settings: &Settings) -> MonitorSettings {
    let long = settings.message_lock.0;
    let cleanup = CleanupPolicy {
        idle_min: settings.consumer_idle_min.map_or(long + IDLE_BEYOND, |idle| idle.0),
        dry_run: settings.consumer_dry_run,
        lock: settings.stream_lock.0,
        every: settings.consumer_cleanup_every.0,
    };
    MonitorSettings {
        cleanup,
        long,
        watch_every: settings.stream_watch.then_some(settings.stream_watch_every.0),
    }
}

/// The pod list of Kubernetes, if a pod selector is set.
pub(crate) async fn pods(settings: &Settings) -> Result<Option<Arc<dyn LivePods>>, Failure> {
    let Some(selector) = &settings.pod_selector else { return Ok(None) };
    optional::pods(selector, settings.pod_namespace.as_deref()).await.map(Some)
}

/// Admin queries to the configured Redis; they need no archive.
pub(crate) async fn admin(settings: &Settings) -> Result<RedisAdmin, Failure> {
    let Some(redis) = redis(settings)? else {
        return Err(Failure::usage("there is no Redis to look into")
            .hint("name it with --redis URL or REDIS_URL; `switchyard up` without one has no consumers"));
    };
    let admin = RedisAdmin::connect(&redis.url, &redis.prefix).await?;
    Ok(admin.with_plain_functions(&redis.plain_functions))
}

/// The Postgres that holds the history; `None` if the data folder does.
pub(crate) fn postgres(settings: &Settings) -> Result<Option<Target>, Failure> {
    let url = settings.postgres.as_ref().map(|url| url.reveal().parse::<Target>());
    url.transpose().map_err(|error| Failure::usage(error.to_string()))
}

/// The configured archive, for commands that need no Redis.
pub(crate) async fn archive(settings: &Settings) -> Result<Arc<dyn Archive>, Failure> {
    let at = match postgres(settings)? {
        Some(target) => {
            migrate(&target).await?;
            ArchiveAt::Postgres(Box::new(target))
        }
        None => ArchiveAt::Folder(settings.data.clone()),
    };
    Ok(switchyard_host::distributed::open_archive(&at, store::notice()).await?.0)
}

/// The history in a Postgres, read without a Redis.
pub(crate) async fn shared_history(settings: &Settings, target: Target) -> Result<History, Failure> {
    let archive = PostgresArchive::open(target.clone()).await?;
    let cas: Arc<dyn Cas> = match cas(settings)? {
        Some(objects) => objects,
        None => Arc::new(PostgresCas::open(target).await?),
    };
    Ok(History::new(Arc::new(archive), Payloads::new(cas)))
}

/// The API keys in Postgres; `None` if the history is in the data folder.
pub(crate) async fn keys(settings: &Settings) -> Result<Option<ApiKeys>, Failure> {
    let Some(target) = postgres(settings)? else { return Ok(None) };
    migrate(&target).await?;
    let archive = PostgresArchive::open(target).await?;
    Ok(Some(ApiKeys::new(Arc::new(archive), Arc::new(SystemClock))))
}

/// Every type of task that `worker.types` may name.
const TYPES: [&str; 8] = ["builtin", "transform", "timer", "hitl", "flow", "http", "command", "function"];

fn worker(settings: &Settings, role: Role) -> Result<Option<WorkerSettings>, Failure> {
    if role == Role::Serving {
        return Ok(None);
    }
    let name = settings.worker_name.clone().unwrap_or_else(made_up_name);
    let worker = WorkerSettings::distributed(name, settings.slots.get(), settings.worker_lease);
    match &settings.worker_types {
        Some(types) if role == Role::Working => Ok(Some(worker.of_types(&read_types(types)?))),
        // This program has only the built-in handlers, which have their own queue; other workers execute functions.
        _ => Ok(Some(worker.without_functions())),
    }
}

fn read_types(list: &str) -> Result<Vec<String>, Failure> {
    let types: Vec<String> = list.split(',').map(|kind| kind.trim().to_owned()).collect();
    match types.iter().find(|kind| !TYPES.contains(&kind.as_str())) {
        Some(unknown) => Err(Failure::usage(format!("there is no type of task `{unknown}`"))
            .hint(format!("the types are {}", TYPES.join(", ")))),
        None => Ok(types),
    }
}

/// Generates a worker name that is unique among the processes that share a Redis.
fn made_up_name() -> String {
    format!("worker-{}-{:08x}", std::process::id(), rand::random::<u32>())
}
