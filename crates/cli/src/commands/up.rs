//! `switchyard up`

use crate::errors::Failure;
use crate::flags::{ServeArgs, StoreArgs, WorkArgs};
use crate::serving::serve_until_stopped;
use crate::settings::Settings;
use crate::stores::Role;

/// Serve the API and work on runs, until Ctrl-C or SIGTERM
///
/// `function` tasks are left to workers that claim them over HTTP; everything else is executed in this process. Runs are
/// kept in the data folder, or with --redis and --postgres where any number of processes share them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchyard up
  switchyard up --listen 127.0.0.1:8080 --data /var/lib/switchyard
  switchyard up --redis redis://127.0.0.1 --postgres postgres://switchyard@127.0.0.1/switchyard
  switchyard workflows register examples/hello.yaml
  curl -d '{\"workflow\": \"hello\"}' -H 'content-type: application/json' http://127.0.0.1:7070/v1/runs")]
pub(crate) struct Args {
    #[command(flatten)]
    _serve: ServeArgs,

    #[command(flatten)]
    _stores: StoreArgs,

    /// Let everybody on this machine in, although there are API keys
    #[arg(long)]
    no_auth: bool,

    #[command(flatten)]
    _work: WorkArgs,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    serve_until_stopped(settings, Role::All, args.no_auth, &[]).await
}
