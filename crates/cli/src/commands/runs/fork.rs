//! `switchyard runs fork`

use switchyard_core::RunId;
use switchyard_runtime::{EngineError, Fork};

use crate::drive::{self, How};
use crate::errors::Failure;
use crate::flags::WorkArgs;
use crate::input;
use crate::output;
use crate::settings::Settings;
use crate::store;

/// Start a new run from a step of an old one: earlier results are kept, input or graph may be edited
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs fork run_… --from analyze --edit better-prompt.yaml")]
pub(crate) struct Args {
    run: RunId,

    /// This node and everything after it is done again
    #[arg(long, value_name = "NODE")]
    from: String,

    /// Another input, as JSON
    #[arg(long, value_name = "JSON")]
    input: Option<String>,

    /// A file with patch operations for the graph; `-` is stdin
    #[arg(long, value_name = "OPS_FILE")]
    edit: Option<String>,

    #[command(flatten)]
    _work: WorkArgs,

    /// Print one document with the run's status, output, error and nodes
    #[arg(long)]
    json: bool,

    /// Only accept the new run and print its id
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn execute(args: Args, settings: &Settings) -> Result<(), Failure> {
    let input = args.input.as_deref().map(|text| input::json("--input", text)).transpose()?;
    let edits = args.edit.as_deref().map(input::operations).transpose()?.unwrap_or_default();
    let yard = store::open_existing(settings).await?;
    drive::tell_recovered(&yard, 0);
    let fork = Fork { run: args.run, from: args.from.into(), input, edits };
    let forked = yard.engine().fork(fork).await.map_err(|error| match error {
        EngineError::Invalid(diagnostics) => Failure::invalid("the fork", diagnostics, None),
        other => other.into(),
    })?;
    let kept = if forked.kept.is_empty() { "nothing".to_owned() } else { forked.kept.join(", ") };
    output::tell(&format!("{} forked from {}, kept: {kept}", forked.run, args.run));
    forked.diff.iter().for_each(|line| output::tell(&format!("  {line}")));
    let how = How { settings, json: args.json };
    if args.detach {
        drive::detach(yard, forked.run, how).await
    } else {
        drive::to_end(yard, forked.run, how).await
    }
}
