//! `switchyard runs cancel|pause|resume|signal`

use serde_json::Value;
use switchyard_core::RunId;

use crate::commands::tell_status;
use crate::errors::Failure;
use crate::input;
use crate::settings::{self, Settings};
use crate::store;

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
}

/// Pause a run: no further node of it starts
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs pause run_…")]
pub(crate) struct PauseArgs {
    run: RunId,
}

/// Take back a pause
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs resume run_… && switchyard run --resume run_…")]
pub(crate) struct ResumeArgs {
    run: RunId,
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
}

pub(crate) async fn cancel(args: &CancelArgs, settings: &Settings) -> Result<(), Failure> {
    let status = store::once(settings, async |engine| {
        engine.cancel(args.run, &settings::user(), &args.reason, !args.no_compensate).await?;
        Ok(engine.state(args.run).await?.status())
    });
    tell_status(args.run, status.await?, settings);
    Ok(())
}

pub(crate) async fn pause(args: &PauseArgs, settings: &Settings) -> Result<(), Failure> {
    let status = store::once(settings, async |engine| {
        engine.pause(args.run, &settings::user()).await?;
        Ok(engine.state(args.run).await?.status())
    });
    tell_status(args.run, status.await?, settings);
    Ok(())
}

pub(crate) async fn resume(args: &ResumeArgs, settings: &Settings) -> Result<(), Failure> {
    let status = store::once(settings, async |engine| {
        engine.resume(args.run, &settings::user()).await?;
        Ok(engine.state(args.run).await?.status())
    });
    tell_status(args.run, status.await?, settings);
    Ok(())
}

pub(crate) async fn signal(args: &SignalArgs, settings: &Settings) -> Result<(), Failure> {
    let payload = match &args.payload {
        Some(text) => input::json("--payload", text)?,
        None => Value::Null,
    };
    let status = store::once(settings, async |engine| {
        engine.signal(args.run, &args.name, &payload).await?;
        Ok(engine.state(args.run).await?.status())
    });
    tell_status(args.run, status.await?, settings);
    Ok(())
}
