//! `switchyard runs retry`

use switchyard_core::RunId;

use crate::drive::{self, How};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::settings::{self, Settings};
use crate::store;

/// Start a failed or cancelled run over from what failed, and follow it to its end
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs retry run_…")]
pub(crate) struct Args {
    run: RunId,

    #[command(flatten)]
    _work: WorkArgs,

    /// Print one document with the run's status, output, error and nodes
    #[arg(long)]
    json: bool,

    /// Only start it over; it goes on with `run --resume`
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let yard = store::open_existing(settings).await?;
    drive::tell_recovered(&yard, 0);
    yard.engine().retry(args.run, &settings::user()).await?;
    let how = How { settings, json: args.json };
    if args.detach {
        drive::detach(yard, args.run, how).await
    } else {
        drive::to_end(yard, args.run, how).await
    }
}
