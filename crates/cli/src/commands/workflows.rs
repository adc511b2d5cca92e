//! `switchyard workflows …`

use std::sync::Arc;

use switchyard_api::WorkflowRecord;

use crate::errors::Failure;
use crate::input;
use crate::operation::OperationArgs;
use crate::output;
use crate::settings::Settings;
use crate::target;

/// Give workflows names, so that `run NAME` and other workflows find them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Register(RegisterArgs),
    List(ListArgs),
    Show(ShowArgs),
}

/// Keep a workflow under its name; a new version if it differs from the newest
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard workflows register examples/hello.yaml")]
pub(crate) struct RegisterArgs {
    /// The workflow file; `-` is stdin
    file: String,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print the version as JSON
    #[arg(long)]
    json: bool,
}

/// List the newest version of every workflow
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard workflows list")]
pub(crate) struct ListArgs {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Print the definition of a workflow, as JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard workflows show hello --version 1")]
#[command(disable_version_flag = true)]
pub(crate) struct ShowArgs {
    name: String,

    /// Which version; the newest, if not given
    #[arg(long, value_name = "N")]
    version: Option<u32>,
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Register(args) => register(&args, settings).await,
        Command::List(args) => list(&args, settings).await,
        Command::Show(args) => show(&args, settings).await,
    }
}

async fn register(args: &RegisterArgs, settings: &Settings) -> Result<(), Failure> {
    let program = Arc::new(input::program(&args.file)?);
    let record = args.operation.find(settings).await?.register(&program).await?;
    if args.json {
        Ok(output::json(&record)?)
    } else {
        Ok(output::line(&format!("{} version {}", record.name, record.version))?)
    }
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let records = target::find(settings).await?.workflows().await?;
    if args.json {
        return Ok(output::json(&records)?);
    }
    if records.is_empty() {
        output::tell("no workflows");
        return Ok(());
    }
    Ok(output::table(["WORKFLOW", "VERSION", "REGISTERED", "DEFINITION"], records.iter().map(row).collect())?)
}

fn row(record: &WorkflowRecord) -> [String; 4] {
    [
        record.name.clone(),
        record.version.to_string(),
        output::moment(record.created_at),
        record.definition.to_string(),
    ]
}

async fn show(args: &ShowArgs, settings: &Settings) -> Result<(), Failure> {
    let definition = target::find(settings).await?.definition(&args.name, args.version).await?;
    Ok(output::json_pretty(&definition)?)
}
