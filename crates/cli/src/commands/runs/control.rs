//! `switchyard runs cancel|pause|resume|signal`

use serde_json::Value;
use switchyard_core::RunId;
use switchyard_store::BulkAction;

use crate::commands::bulk::BulkArgs;
use crate::commands::tell_status;
use crate::errors::Failure;
use crate::input;
use crate::operation::OperationArgs;
use crate::settings::Settings;

/// Cancel a run; what had succeeded is undone first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs cancel run_… --reason 'wrong customer'")]
pub(crate) struct CancelArgs {
    #[arg(required_unless_present = "filter")]
    run: Option<RunId>,

    #[command(flatten)]
    bulk: BulkArgs,

    /// Why, for its history
    #[arg(long, default_value = "")]
    reason: String,

    /// Leave what had succeeded as it is
    #[arg(long)]
    no_compensate: bool,

    /// End what workers hold of it at once, instead of giving them `runs.stop_grace` to stop
    #[arg(long)]
    now: bool,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"run_id", "status"}`
    #[arg(long)]
    json: bool,
}

/// Pause a run: no further node of it starts
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs pause run_…")]
pub(crate) struct PauseArgs {
    #[arg(required_unless_present = "filter")]
    run: Option<RunId>,

    #[command(flatten)]
    bulk: BulkArgs,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"run_id", "status"}`
    #[arg(long)]
    json: bool,
}

/// Take back a pause
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs resume run_… && switchyard run --resume run_…")]
pub(crate) struct ResumeArgs {
    #[arg(required_unless_present = "filter")]
    run: Option<RunId>,

    #[command(flatten)]
    bulk: BulkArgs,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"run_id", "status"}`
    #[arg(long)]
    json: bool,
}

/// Send a signal to a run; it is kept until a `wait` node asks for it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs signal run_… paid --payload '{\"amount\": 7}'")]
pub(crate) struct SignalArgs {
    run: RunId,

    /// The name that the node waits for
    name: String,

    /// What the node's output will be
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,

    #[command(flatten)]
    operation: OperationArgs,

    /// Print `{"run_id", "status"}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn cancel(args: &CancelArgs, settings: &Settings) -> Result<(), Failure> {
    if let Some(filter) = args.bulk.read()? {
        let action = BulkAction::Cancel {
            reason: args.reason.as_str().into(),
            compensate: !args.no_compensate,
            now: args.now,
        };
        return args.bulk.start(action, &filter, &args.operation, settings, args.json).await;
    }
    let run = one(args.run)?;
    let target = args.operation.find(settings).await?;
    let at = target.cancel(run, &args.reason, !args.no_compensate, args.now).await?;
    tell_status(at, args.json, &*target)
}

pub(crate) async fn pause(args: &PauseArgs, settings: &Settings) -> Result<(), Failure> {
    if let Some(filter) = args.bulk.read()? {
        return args.bulk.start(BulkAction::Pause, &filter, &args.operation, settings, args.json).await;
    }
    let run = one(args.run)?;
    let target = args.operation.find(settings).await?;
    let at = target.pause(run).await?;
    tell_status(at, args.json, &*target)
}

pub(crate) async fn resume(args: &ResumeArgs, settings: &Settings) -> Result<(), Failure> {
    if let Some(filter) = args.bulk.read()? {
        return args.bulk.start(BulkAction::Resume, &filter, &args.operation, settings, args.json).await;
    }
    let run = one(args.run)?;
    let target = args.operation.find(settings).await?;
    let at = target.resume(run).await?;
    tell_status(at, args.json, &*target)
}

pub(crate) async fn signal(args: &SignalArgs, settings: &Settings) -> Result<(), Failure> {
    let payload = match &args.payload {
        Some(text) => input::json("--payload", text)?,
        None => Value::Null,
    };
    let target = args.operation.find(settings).await?;
    let at = target.signal(args.run, &args.name, &payload).await?;
    tell_status(at, args.json, &*target)
}

/// The run id, which is required if no filter is given.
pub(crate) fn one(run: Option<RunId>) -> Result<RunId, Failure> {
    run.ok_or_else(|| Failure::usage("say which run, or which runs with --filter"))
}
