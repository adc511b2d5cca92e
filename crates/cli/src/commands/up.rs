//! `switchyard up`

use std::net::SocketAddr;
use std::time::Duration;

use switchyard_embedded::Embedded;
use switchyard_server::{Access, Limits, ServerState, allow_many_connections, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::drive::{self, Signals};
use crate::errors::Failure;
use crate::flags::{ServeArgs, WorkArgs};
use crate::output;
use crate::settings::Settings;
use crate::store;

/// Serve the API and work on runs, until Ctrl-C or SIGTERM
///
/// `function` tasks are left to workers that claim them over HTTP; everything else is executed in this process.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard up
  switchyard up --listen 127.0.0.1:8080 --data /var/lib/switchyard
  curl -d '{\"workflow\": \"hello\"}' -H 'content-type: application/json' http://127.0.0.1:7070/v1/runs")]
pub(crate) struct Args {
    #[command(flatten)]
    _serve: ServeArgs,

    /// Let everybody on this machine in, although there are API keys
    #[arg(long)]
    no_auth: bool,

    #[command(flatten)]
    _work: WorkArgs,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    refuse_strangers(args, settings).await?;
    allow_many_connections();
    let mut signals = Signals::listen()?;
    let listener = bind(settings.listen).await?;
    let address = listener.local_addr().unwrap_or(settings.listen);
    let yard = store::open_for_workers(settings).await?;
    drive::tell_damaged(&yard);
    drive::tell_others(yard.recovered().runs);
    let mut trouble = yard.work();
    let keys = !args.no_auth && yard.engine().keys().any().await?;
    tell_where(address, keys, settings);

    let stop = CancellationToken::new();
    let access = if args.no_auth { Access::Anybody } else { Access::UntilKeysExist };
    let state = ServerState::new(yard.engine().clone(), yard.services().clone())
        .with_access(access)
        .with_limits(limits(settings))
        .of_store(yard.id());
    let serving = tokio::spawn(serve(listener, state, stop.clone().cancelled_owned()));
    let answer = tokio::select! {
        _ = signals.next() => Ok(()),
        why = drive::said(&mut trouble) => Err(Failure::store(why)
            .hint("nothing accepted is lost; start again when the folder can be written")),
    };
    output::tell("stopping: requests are finished, tasks handed back");
    stop.cancel();
    tokio::select! {
        () = leave(yard, serving, settings.worker_grace) => {}
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

/// Whoever can reach the API and has a key, or needs none, can do anything with it.
async fn refuse_strangers(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let listen = settings.listen;
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if args.no_auth {
        let why = format!("{listen} can be reached from other machines: --no-auth is for loopback addresses");
        return Err(Failure::usage(why));
    }
    if settings.data.exists() && switchyard_embedded::keys(&settings.data)?.any_live().await? {
        return Ok(());
    }
    Err(Failure::usage(format!("{listen} can be reached from other machines, and there is no API key"))
        .hint(format!("make one first: {}", settings.command("keys create NAME")))
        .hint("there is no TLS: let a proxy that has it stand before it"))
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        Failure::store(format!("cannot listen on {listen}: {error}"))
            .hint("choose another with --listen ADDRESS")
    })
}

fn tell_where(address: SocketAddr, keys: bool, settings: &Settings) {
    output::tell(&format!("switchyard {} is up", env!("CARGO_PKG_VERSION")));
    output::tell(&format!("  API    http://{address}/v1   (OpenAPI: http://{address}/openapi.json)"));
    output::tell(&format!("  state  {}", settings.data.display()));
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

/// What commands have to be told to come here: nothing, where they come anyway.
fn flag(address: SocketAddr, settings: &Settings) -> String {
    let own = format!("http://{address}");
    if settings.server.as_str() == own { String::new() } else { format!(" --server {own}") }
}

/// Requests first: they may still need the store.
async fn leave(yard: Embedded, serving: tokio::task::JoinHandle<()>, grace: Duration) {
    if let Err(error) = serving.await {
        tracing::error!(%error, "the server ended badly");
    }
    yard.shut_down(grace).await;
}
