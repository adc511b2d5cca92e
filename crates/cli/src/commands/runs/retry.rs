//! `switchyard runs retry`

use switchyard_core::RunId;

use crate::drive::{self, How, Since};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::operation::OperationArgs;
use crate::settings::Settings;
use crate::target::Opening;

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
    let mut target = args.operation.find(settings).await?;
    target.open(Opening { create: false }).await?;
    drive::tell_others(target.taken_up());
    let before = target.run(args.run, None).await?.last_seq;
    target.retry(args.run).await?;
    let how = How { settings, json: args.json };
    if args.detach {
        drive::detach(&mut *target, args.run, how).await
    } else {
        drive::to_end(&mut *target, args.run, Since::Event(before + 1), how).await
    }
}
