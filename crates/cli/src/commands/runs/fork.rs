//! `switchyard runs fork`

use switchyard_core::RunId;
use switchyard_store::BulkAction;

use crate::commands::bulk::BulkArgs;
use crate::commands::runs::control::one;
use crate::drive::{self, How, Since};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::input;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::target::{Fork, Opening};

/// Start a new run from a step of an old one: earlier results are kept, input or graph may be edited
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs fork run_… --from analyze --edit better-prompt.yaml")]
pub(crate) struct Args {
    #[arg(required_unless_present = "filter", requires = "from")]
    run: Option<RunId>,

    #[command(flatten)]
    bulk: BulkArgs,

    /// This node and everything after it is done again; with --filter, the node that a run failed at if not given
    #[arg(long, value_name = "NODE")]
    from: Option<String>,

    /// Another input, as JSON
    #[arg(long, value_name = "JSON")]
    input: Option<String>,

    /// A file with patch operations for the graph; `-` is stdin
    #[arg(long, value_name = "OPS_FILE")]
    edit: Option<String>,

    #[command(flatten)]
    _work: WorkArgs,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print one document with the run's status, output, error and nodes
    #[arg(long)]
    json: bool,

    /// Only accept the new run and print its id
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn execute(args: Args, settings: &Settings) -> Result<(), Failure> {
    if let Some(filter) = args.bulk.read()? {
        let action = BulkAction::Fork { from: args.from.as_deref().map(Into::into) };
        return args.bulk.start(action, &filter, &args.operation, settings, args.json).await;
    }
    let origin = one(args.run)?;
    let from = args.from.ok_or_else(|| Failure::usage("say which node to fork from with --from"))?;
    let input = args.input.as_deref().map(|text| input::json("--input", text)).transpose()?;
    let edits = args.edit.as_deref().map(input::operations).transpose()?.unwrap_or_default();
    let mut target = args.operation.find(settings).await?;
    target.open(Opening { create: false }).await?;
    drive::tell_others(target.taken_up());
    let fork = Fork { run: origin, from, input, edits };
    let forked = target.fork(fork).await.map_err(|failure| failure.about("the fork"))?;
    let run = forked.run.run_id;
    let kept = if forked.kept.is_empty() { "nothing".to_owned() } else { forked.kept.join(", ") };
    output::tell(&format!("{run} forked from {origin}, kept: {kept}"));
    forked.diff.iter().for_each(|line| output::tell(&format!("  {line}")));
    let how = How { settings, json: args.json };
    if args.detach {
        drive::detach(&mut *target, run, how).await
    } else {
        drive::to_end(&mut *target, run, Since::Event(1), how).await
    }
}
