//! One file for each command.

pub(crate) mod approvals;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod keys;
pub(crate) mod patch;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod schema;
pub(crate) mod up;
pub(crate) mod validate;
pub(crate) mod workflows;

use switchyard_core::RunId;
use switchyard_core::run::RunStatus;

use crate::cli::Command;
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Up(args) => up::execute(&args, settings).await,
        Command::Run(args) => run::execute(args, settings).await,
        Command::Validate(args) => validate::execute(&args),
        Command::Schema(args) => schema::execute(&args),
        Command::Runs(command) => runs::execute(command, settings).await,
        Command::Approvals(command) => approvals::execute(command, settings).await,
        Command::Patch(command) => patch::execute(command, settings).await,
        Command::Workflows(command) => workflows::execute(command, settings).await,
        Command::Schedules(command) => schedules::execute(command, settings).await,
        Command::Config(args) => config::execute(&args, settings),
        Command::Keys(command) => keys::execute(command, settings).await,
        Command::Bench(args) => bench::execute(&args).await,
        Command::Completions(args) => completions::execute(&args),
    }
}

/// Says where a run stands after a command that did not carry it on, and how to.
fn tell_status(run: RunId, status: RunStatus, settings: &Settings) {
    output::tell(&format!("{run}: {status}"));
    match status {
        status if status.is_terminal() => {}
        RunStatus::Paused => output::hint(&settings.command(&format!("runs resume {run}"))),
        _ => output::hint(&format!("no worker runs now; carry it on with {}", settings.resume_command(run))),
    }
}
