//! `switchyard up`

use std::net::SocketAddr;
use std::time::Duration;

use switchyard_embedded::Embedded;
use switchyard_server::{ServerState, serve};
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

    #[command(flatten)]
    _work: WorkArgs,
}

pub(crate) async fn execute(settings: &Settings) -> Result<(), Failure> {
    refuse_strangers(settings.listen)?;
    let mut signals = Signals::listen()?;
    let listener = bind(settings.listen).await?;
    let address = listener.local_addr().unwrap_or(settings.listen);
    let yard = store::open_for_workers(settings).await?;
    drive::tell_damaged(&yard);
    drive::tell_others(yard.recovered().runs);
    let mut trouble = yard.work();
    tell_where(address, settings);

    let stop = CancellationToken::new();
    let state = ServerState::new(yard.engine().clone(), yard.services().clone()).of_store(yard.id());
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

/// Anybody who can reach the API can do anything with it.
fn refuse_strangers(listen: SocketAddr) -> Result<(), Failure> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{listen} can be reached from other machines, and there is no authentication yet"
    ))
    .hint("listen on 127.0.0.1 until there are API keys, or let a proxy that knows who may come in stand before it"))
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        Failure::store(format!("cannot listen on {listen}: {error}"))
            .hint("choose another with --listen ADDRESS")
    })
}

fn tell_where(address: SocketAddr, settings: &Settings) {
    output::tell(&format!("switchyard {} is up", env!("CARGO_PKG_VERSION")));
    output::tell(&format!("  API    http://{address}/v1   (OpenAPI: http://{address}/openapi.json)"));
    output::tell(&format!("  state  {}", settings.data.display()));
    output::tell("try in another terminal:");
    output::tell(&format!(
        "  curl http://{address}/v1/runs -H 'content-type: application/json' \\\n    -d '{{\"workflow\": {{\"name\": \
         \"hi\", \"nodes\": {{\"a\": {{\"type\": \"transform\", \"value\": \"Hello!\"}}}}}}}}'"
    ));
    output::tell(&format!("  {}", settings.command("runs list")));
    output::tell("Ctrl-C stops it");
}

/// Requests first: they may still need the store.
async fn leave(yard: Embedded, serving: tokio::task::JoinHandle<()>, grace: Duration) {
    if let Err(error) = serving.await {
        tracing::error!(%error, "the server ended badly");
    }
    yard.shut_down(grace).await;
}
