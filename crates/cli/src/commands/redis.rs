//! `switchyard redis …`

mod rebuild;

use crate::errors::Failure;
use crate::settings::Settings;

/// Look after the Redis that processes share
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Rebuild(rebuild::Args),
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Rebuild(args) => rebuild::execute(&args, settings).await,
    }
}
