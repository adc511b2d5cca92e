//! `switchyard runs retry`

use switchyard_core::RunId;
use switchyard_store::BulkAction;

use crate::commands::bulk::BulkArgs;
use crate::commands::runs::control::one;
use crate::drive::{self, How, Since};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::operation::OperationArgs;
use crate::settings::Settings;
use crate::target::Opening;

/// Start a failed or cancelled run over from what failed, and follow it to its end
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  switchyard runs retry run_…\n  switchyard runs retry --filter 'status=failed code=timeout created_after=24h'"
)]
pub(crate) struct Args {
    #[arg(required_unless_present = "filter")]
    run: Option<RunId>,

    #[command(flatten)]
    bulk: BulkArgs,

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
    if let Some(filter) = args.bulk.read()? {
        return args.bulk.start(BulkAction::Retry, &filter, &args.operation, settings, args.json).await;
    }
    let run = one(args.run)?;
    let mut target = args.operation.find(settings).await?;
    target.open(Opening { create: false }).await?;
    drive::tell_others(target.taken_up());
    let before = target.run(run, None).await?.last_seq;
    target.retry(run).await?;
    let how = How { settings, json: args.json };
    if args.detach {
        drive::detach(&mut *target, run, how).await
    } else {
        drive::to_end(&mut *target, run, Since::Event(before + 1), how).await
    }
}
