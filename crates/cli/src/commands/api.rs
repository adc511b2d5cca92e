//! `switchyard api`

use crate::errors::Failure;
use crate::flags::{ServeArgs, StoreArgs};
use crate::serving::serve_until_stopped;
use crate::settings::Settings;
use crate::stores::Role;

/// Serve the API over a Redis and a Postgres that workers share, until Ctrl-C or SIGTERM
///
/// Executes no task: `switchyard worker` does. Any number of each may run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  switchyard api --redis redis://127.0.0.1 --postgres postgres://switchyard@127.0.0.1/switchyard")]
pub(crate) struct Args {
    #[command(flatten)]
    _serve: ServeArgs,

    #[command(flatten)]
    _stores: StoreArgs,

    /// Let everybody on this machine in, although there are API keys
    #[arg(long)]
    no_auth: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    serve_until_stopped(settings, Role::Serving, args.no_auth, &[]).await
}
