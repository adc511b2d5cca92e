//! `switchyard runs cancel|pause|resume|signal`

use serde_json::Value;
use switchyard_core::RunId;

use crate::commands::tell_status;
use crate::errors::Failure;
use crate::input;
use crate::operation::OperationArgs;
use crate::settings::Settings;

/// Cancel a run; what had succeeded is undone first
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs cancel run_… --reason 'wrong customer'")]
pub(crate) struct CancelArgs {
    run: RunId,

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
    run: RunId,

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
    run: RunId,

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
    let target = args.operation.find(settings).await?;
    let at = target.cancel(args.run, &args.reason, !args.no_compensate, args.now).await?;
    tell_status(at, args.json, &*target)
}

pub(crate) async fn pause(args: &PauseArgs, settings: &Settings) -> Result<(), Failure> {
    let target = args.operation.find(settings).await?;
    let at = target.pause(args.run).await?;
    tell_status(at, args.json, &*target)
}

pub(crate) async fn resume(args: &ResumeArgs, settings: &Settings) -> Result<(), Failure> {
    let target = args.operation.find(settings).await?;
    let at = target.resume(args.run).await?;
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
