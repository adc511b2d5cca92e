//! `switchyard worker`

use switchyard_server::{ServerState, serve_health};

use crate::drive::Signals;
use crate::errors::Failure;
use crate::flags::{StoreArgs, WorkArgs, WorkerArgs};
use crate::output;
use crate::serving;
use crate::settings::Settings;
use crate::sidecar;
use crate::stores::{Role, Stores};

/// Execute tasks of runs in a Redis that processes share, until Ctrl-C or SIGTERM
///
/// Stops in order: no further task is claimed; what runs may finish for `worker.grace`, and what is left then is handed
/// back for others; it leaves the group of workers, and tells an Envoy beside it to quit. A second signal ends it
/// at once; other workers get its tasks when its lease has run out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard worker --redis redis://127.0.0.1 --postgres postgres://switchyard@127.0.0.1/switchyard
  switchyard worker --types http,transform --slots 32")]
pub(crate) struct Args {
    #[command(flatten)]
    _stores: StoreArgs,

    #[command(flatten)]
    _worker: WorkerArgs,

    #[command(flatten)]
    _work: WorkArgs,
}

pub(crate) async fn execute(settings: &Settings) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let stores = signals.unless_sent(Stores::open(settings, Role::Working)).await?;
    let health = match settings.metrics_listen {
        Some(listen) => Some(serving::bind(listen, "metrics.listen").await?),
        None => None,
    };
    let _trouble = stores.work();
    output::tell(&format!("switchyard {} works; Ctrl-C stops it", env!("CARGO_PKG_VERSION")));
    if let Some(listener) = health {
        let address = listener.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
        output::tell(&format!("  metrics http://{address}/metrics"));
        let state = ServerState::new(stores.engine().clone(), stores.services().clone());
        // The health server runs until the process ends: a stopping worker is still probed.
        tokio::spawn(serve_health(listener, state, std::future::pending()));
    }
    signals.next().await;
    output::tell("stopping: tasks finish or are handed back");
    tokio::select! {
        () = stores.shut_down(settings.worker_grace) => {
            sidecar::tell_to_quit(settings).await;
            Ok(())
        }
        exit = signals.next() => std::process::exit(exit as i32),
    }
}
