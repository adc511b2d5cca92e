//! `switchyard runs why`

use switchyard_core::RunId;

use crate::errors::Failure;
use crate::output;
use crate::reasons;
use crate::settings::Settings;
use crate::target;

/// Say what a run waits for, and what to do about it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard runs why run_…")]
pub(crate) struct Args {
    run: RunId,

    /// Print `{"run_id", "status", "waits": […]}`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let target = target::find(settings).await?;
    let found = target.waits(args.run).await?;
    if args.json {
        return Ok(output::json(&found)?);
    }
    match found.waits.as_slice() {
        [] if found.status.is_terminal() => {
            output::tell(&format!("{} has ended: {}", args.run, found.status))
        }
        [] => output::tell(&format!("{} waits for nothing", args.run)),
        waits => {
            for reason in waits {
                output::line(&reasons::waiting(reason))?;
            }
            reasons::hints(args.run, waits, &*target).iter().for_each(|hint| output::hint(hint));
        }
    }
    Ok(())
}
