//! `switchyard workflows …`

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchyard_store::{StoreError, WorkflowRecord};

use crate::errors::Failure;
use crate::input;
use crate::output;
use crate::settings::Settings;
use crate::store;

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
    let yard = store::open(settings).await?;
    let engine = yard.engine();
    engine.catalog().add(program.clone()).await?;
    let now = engine.clock().now();
    let record = engine.archive().register_workflow(&program.ir.name, program.hash, now).await?;
    yard.shut_down(Duration::ZERO).await;
    if args.json {
        Ok(output::json(&record)?)
    } else {
        Ok(output::line(&format!("{} version {}", record.name, record.version))?)
    }
}

async fn list(args: &ListArgs, settings: &Settings) -> Result<(), Failure> {
    let records = store::peek(settings)?.archive().workflows().await?;
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
    let history = store::peek(settings)?;
    let record = history.archive().workflow(&args.name, args.version).await?;
    let shown = args.version.map_or(args.name.clone(), |version| format!("{} version {version}", args.name));
    let record = record.ok_or_else(|| StoreError::unknown("workflow", shown))?;
    let text = history.archive().definition(record.definition).await?;
    let text = text.ok_or_else(|| StoreError::unknown("definition", record.definition))?;
    let definition: Value =
        serde_json::from_str(&text).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(output::json_pretty(&definition)?)
}
