//! Serves the API on an address until Ctrl-C or SIGTERM, for `up`, `api` and `dev`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use switchyard_server::{Access, Limits, ServerState, allow_many_connections, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::commands::dev;
use crate::drive::{self, Signals};
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::sidecar;
use crate::store;
use crate::stores::{self, Role, Stores};
use crate::waiting;

/// Serves the API, and executes tasks if this process has a worker, until Ctrl-C or SIGTERM. Registers the `watched`
/// workflow files whenever they change, and shows runs.
pub(crate) async fn serve_until_stopped(
    settings: &Settings,
    role: Role,
    no_auth: bool,
    watched: &[PathBuf],
) -> Result<(), Failure> {
    refuse_strangers(settings, no_auth).await?;
    allow_many_connections();
    let mut signals = Signals::listen()?;
    let listener = bind(settings.listen, "--listen ADDRESS").await?;
    let address = listener.local_addr().unwrap_or(settings.listen);
    let stores = signals.unless_sent(Stores::open(settings, role)).await?;
    drive::tell_damaged(stores.recovered());
    drive::tell_others(stores.recovered().runs);
    let mut trouble = stores.work();
    let keys = !no_auth && stores.engine().keys().any().await?;
    tell_where(address, keys, settings);

    let stop = CancellationToken::new();
    let access = if no_auth { Access::Everyone } else { Access::UntilKeysExist };
    let state = ServerState::new(stores.engine().clone(), stores.services().clone())
        .with_access(access)
        .with_limits(limits(settings))
        .with_cors_origins(
            settings.http_cors_origins.as_ref().map_or_else(Vec::new, |origins| origins.0.clone()),
        )
        .of_store(stores.id());
    let serving = tokio::spawn(serve(listener, state, stop.clone().cancelled_owned()));
    let watching = (!watched.is_empty())
        .then(|| AbortOnDropHandle::new(tokio::spawn(dev::watch(stores.engine().clone(), watched.to_vec()))));
    let answer = tokio::select! {
        _ = signals.next() => Ok(()),
        why = drive::said(&mut trouble), if !stores.waits_for_its_store() => Err(Failure::store(why)
            .hint("nothing accepted is lost; start again when the folder can be written")),
    };
    drop(watching);
    output::tell("stopping: requests are finished, tasks handed back");
    stop.cancel();
    tokio::select! {
        () = leave(stores, serving, settings.worker_grace) => sidecar::tell_to_quit(settings).await,
        exit = signals.next() => std::process::exit(exit as i32),
    }
    answer
}

fn limits(settings: &Settings) -> Limits {
    Limits {
        body_bytes_max: settings.http_body_max.0,
        request_max: settings.http_timeout,
        heartbeat_every: settings.http_heartbeat,
        grace: settings.http_grace,
        ..Limits::default()
    }
}

/// Refuses to serve without API keys beyond the loopback address: without keys, every client may do everything.
async fn refuse_strangers(settings: &Settings, no_auth: bool) -> Result<(), Failure> {
    let listen = settings.listen;
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if no_auth {
        let why = format!("{listen} can be reached from other machines: --no-auth is for loopback addresses");
        return Err(Failure::usage(why));
    }
    waiting::for_stores(settings).await?;
    let live = match stores::keys(settings).await? {
        Some(keys) => keys.any_live().await?,
        None => settings.data.exists() && store::existing_keys(settings)?.any_live().await?,
    };
    if live {
        return Ok(());
    }
    Err(Failure::usage(format!("{listen} can be reached from other machines, and there is no API key"))
        .hint(format!("make one first: {}", settings.command("keys create NAME")))
        .hint("there is no TLS: let a proxy that has it stand before it"))
}

/// Binds the address. `how` names the flag or setting that chooses another one.
pub(crate) async fn bind(listen: SocketAddr, how: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        Failure::store(format!("cannot listen on {listen}: {error}"))
            .hint(format!("choose another with {how}"))
    })
}

fn tell_where(address: SocketAddr, keys: bool, settings: &Settings) {
    output::tell(&format!("switchyard {} is up", env!("CARGO_PKG_VERSION")));
    output::tell(&format!("  API    http://{address}/v1   (OpenAPI: http://{address}/openapi.json)"));
    output::tell(&format!("  state  {}", state(settings)));
    if keys {
        output::tell(&format!("  keys   every request needs one   ({})", settings.command("keys list")));
    }
    output::tell("try in another terminal:");
    let key = if keys { "-H \"authorization: Bearer $SWITCHYARD_API_KEY\" " } else { "" };
    output::tell(&format!(
        "  curl http://{address}/v1/runs {key}-H 'content-type: application/json' \\\n    -d '{{\"workflow\": {{\"name\": \
         \"hi\", \"nodes\": {{\"a\": {{\"type\": \"transform\", \"value\": \"Hello!\"}}}}}}}}'"
    ));
    output::tell(&format!("  switchyard runs list{}", flag(address, settings)));
    output::tell("Ctrl-C stops it");
}

/// Describes the stores, without passwords.
fn state(settings: &Settings) -> String {
    match (&settings.redis, stores::postgres(settings)) {
        (Some(_), Ok(Some(postgres))) => format!("Redis, and {postgres}"),
        (Some(_), _) => format!("Redis, and {}", settings.data.display()),
        _ => settings.data.display().to_string(),
    }
}

/// The `--server` flag that commands need to reach this server; empty if the settings already name it.
fn flag(address: SocketAddr, settings: &Settings) -> String {
    let own = format!("http://{address}");
    if settings.server.as_str() == own { String::new() } else { format!(" --server {own}") }
}

/// Waits for open requests, which may still need the stores, and then shuts the stores down.
async fn leave(stores: Stores, serving: tokio::task::JoinHandle<()>, grace: Duration) {
    if let Err(error) = serving.await {
        tracing::error!(%error, "the server ended badly");
    }
    stores.shut_down(grace).await;
}
