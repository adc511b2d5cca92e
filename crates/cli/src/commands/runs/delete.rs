//! `switchyard runs delete`, `switchyard runs tombstones`

use switchyard_core::RunId;
use switchyard_store::BulkAction;

use crate::commands::bulk::BulkArgs;
use crate::errors::Failure;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// Delete a run that has ended, with the runs that it started; a tombstone keeps who did it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  switchyard runs delete run_… --reason 'asked for by the customer'
  switchyard runs delete --filter 'label=customer=acme' --dry-run")]
pub(crate) struct Args {
    #[arg(required_unless_present = "filter")]
    run: Option<RunId>,

    #[command(flatten)]
    bulk: BulkArgs,

    /// Why, for the tombstone
    #[arg(long, default_value = "")]
    reason: String,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print the tombstone, or the job
    #[arg(long)]
    json: bool,
}

/// List runs that were deleted, the latest deletions first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs tombstones")]
pub(crate) struct TombstonesArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    if let Some(filter) = args.bulk.read()? {
        let action = BulkAction::Delete { reason: args.reason.as_str().into() };
        return args.bulk.start(action, &filter, &args.operation, settings, args.json).await;
    }
    let Some(run) = args.run else { return Err(Failure::usage("say which run to delete")) };
    let tombstone = args.operation.find(settings).await?.delete_run(run, &args.reason).await?;
    if args.json {
        output::json(&tombstone)?;
    }
    let children = match tombstone.children {
        0 => String::new(),
        1 => ", with 1 run that it had started".to_owned(),
        n => format!(", with {n} runs that it had started"),
    };
    output::tell(&format!("{run}: deleted{children}"));
    Ok(())
}

pub(crate) async fn tombstones(args: &TombstonesArgs, settings: &Settings) -> Result<(), Failure> {
    let tombstones = target::find(settings).await?.tombstones(args.limit as usize).await?;
    if args.json {
        return Ok(output::json(&tombstones)?);
    }
    if tombstones.is_empty() {
        output::tell("no run was deleted");
        return Ok(());
    }
    let rows = tombstones.iter().map(|tombstone| {
        [
            tombstone.run_id.to_string(),
            tombstone.workflow.to_string(),
            output::moment(tombstone.deleted_at),
            tombstone.deleted_by.to_string(),
            tombstone.reason.to_string(),
        ]
    });
    Ok(output::table(["RUN", "WORKFLOW", "DELETED", "BY", "REASON"], rows.collect())?)
}
