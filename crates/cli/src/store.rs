//! Opens the data folder: exclusively to change something, or for reading beside another process.

use std::time::Duration;

use switchyard_core::in_flight::Limits;
use switchyard_host::embedded::{Embedded, Notice, Options};
use switchyard_runtime::{ApiKeys, Engine, EngineError, History};
use switchyard_store::StoreError;

use crate::errors::Failure;
use crate::observe;
use crate::output;
use crate::settings::Settings;

const ELSEWHERE: &str = "say where the runs are with --data DIR or SWITCHYARD_DATA";

/// Opens the folder exclusively, and creates it if it does not exist.
pub(crate) async fn open(settings: &Settings) -> Result<Embedded, Failure> {
    Embedded::open(options(settings)?).await.map_err(|error| refused(error, settings))
}

/// The failure to open a folder; for a damaged one, with hints how to repair it.
pub(crate) fn refused(error: EngineError, settings: &Settings) -> Failure {
    match error {
        EngineError::Store(error @ StoreError::Corrupt(_)) => damaged(error, settings),
        other => other.into(),
    }
}

pub(crate) fn damaged(error: StoreError, settings: &Settings) -> Failure {
    Failure::store(error)
        .hint(format!("nothing was changed; what is affected: {}", settings.command("doctor --deep")))
        .hint(format!(
            "everything that is whole into a new folder: {}",
            settings.command("doctor --salvage NEWDIR")
        ))
}

/// Prints notices while a folder is opened.
pub(crate) fn notice() -> Notice {
    Notice::new(output::tell)
}

fn options(settings: &Settings) -> Result<Options, Failure> {
    let mut options = Options::new(&settings.data);
    options.nodes = settings.nodes();
    options.slots = settings.slots.get();
    options.limits = limits(settings);
    options.retention = settings.retention();
    options.observe = observe::observe(settings)?;
    options.notice = notice();
    // This program has only the built-in functions; all others wait for a worker of a server.
    options.leave_functions = true;
    Ok(options)
}

pub(crate) fn limits(settings: &Settings) -> Limits {
    let deliveries_max = u32::try_from(settings.worker_deliveries.get()).unwrap_or(u32::MAX);
    Limits {
        deliveries_max,
        attempt_default: settings.message_lock.0,
        stop_grace: settings.runs_stop_grace,
        ..Limits::default()
    }
}

/// Opens an existing folder exclusively: the command asks about data that only an existing folder can have.
pub(crate) async fn open_existing(settings: &Settings) -> Result<Embedded, Failure> {
    drop(peek(settings)?);
    open(settings).await
}

/// Opens the folder for reading; another process may work in it.
pub(crate) fn peek(settings: &Settings) -> Result<History, Failure> {
    must_exist(settings)?;
    switchyard_host::embedded::peek(&settings.data).map_err(|error| match error {
        StoreError::Unavailable(why) => Failure::store(why).hint(ELSEWHERE),
        error @ StoreError::Corrupt(_) => damaged(error, settings),
        other => other.into(),
    })
}

/// The API keys of an existing folder; another process may work in it.
pub(crate) fn existing_keys(settings: &Settings) -> Result<ApiKeys, Failure> {
    must_exist(settings)?;
    Ok(switchyard_host::embedded::keys(&settings.data)?)
}

fn must_exist(settings: &Settings) -> Result<(), Failure> {
    if settings.data.exists() {
        return Ok(());
    }
    Err(Failure::store(format!("there is no data folder {}", settings.data.display())).hint(ELSEWHERE))
}

/// Opens the folder for one operation that needs no worker.
pub(crate) async fn once<T>(
    settings: &Settings,
    act: impl AsyncFnOnce(&Engine) -> Result<T, EngineError>,
) -> Result<T, Failure> {
    let store = open_existing(settings).await?;
    let answer = act(store.engine()).await;
    store.shut_down(Duration::ZERO).await;
    Ok(answer?)
}
