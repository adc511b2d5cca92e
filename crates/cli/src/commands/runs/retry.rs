//! `switchyard runs retry`

use switchyard_core::RunId;

use crate::drive::{self, How, Since};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::operation::OperationArgs;
use crate::place::Opening;
use crate::settings::Settings;

/// Start a failed or cancelled run over from what failed, and follow it to its end
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs retry run_…")]
pub(crate) struct Args {
    run: RunId,

    #[command(flatten)]
    _work: WorkArgs,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print one document with the run's status, output, error and nodes
    #[arg(long)]
    json: bool,

    /// Only start it over; it goes on with `run --resume`
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let mut place = args.operation.find(settings).await?;
    place.open(Opening { create: false }).await?;
    drive::tell_others(place.taken_up());
    let before = place.run(args.run, None).await?.last_seq;
    place.retry(args.run).await?;
    let how = How { settings, json: args.json };
    if args.detach {
        drive::detach(&mut *place, args.run, how).await
    } else {
        drive::to_end(&mut *place, args.run, Since::Event(before + 1), how).await
    }
}
