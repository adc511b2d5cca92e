//! One file for each command.

pub(crate) mod api;
pub(crate) mod approvals;
pub(crate) mod bench;
pub(crate) mod bulk;
pub(crate) mod checkpoints;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod consumers;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod keys;
pub(crate) mod migrate;
pub(crate) mod patch;
pub(crate) mod queues;
pub(crate) mod redis;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod schema;
pub(crate) mod up;
pub(crate) mod validate;
pub(crate) mod worker;
pub(crate) mod workers;
pub(crate) mod workflows;

use switchyard_api::RunAt;
use switchyard_core::RunId;
use switchyard_core::run::RunStatus;

use crate::cli::Command;
use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;
use crate::target::Target;

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::Up(args) => up::execute(&args, settings).await,
        Command::Init(args) => init::execute(&args),
        Command::Dev(args) => dev::execute(&args, settings).await,
        Command::Api(args) => api::execute(&args, settings).await,
        Command::Worker(_) => worker::execute(settings).await,
        Command::Run(args) => run::execute(args, settings).await,
        Command::Validate(args) => validate::execute(&args),
        Command::Schema(args) => schema::execute(&args),
        Command::Runs(command) => runs::execute(command, settings).await,
        Command::Bulk(command) => bulk::execute(command, settings).await,
        Command::Approvals(command) => approvals::execute(command, settings).await,
        Command::Patch(command) => patch::execute(command, settings).await,
        Command::Workflows(command) => workflows::execute(command, settings).await,
        Command::Schedules(command) => schedules::execute(command, settings).await,
        Command::Queues(args) => queues::execute(args, settings).await,
        Command::Workers(args) => workers::execute(&args, settings).await,
        Command::Migrate(args) => migrate::execute(&args, settings).await,
        Command::Redis(command) => redis::execute(command, settings).await,
        Command::Consumers(args) => consumers::execute(&args, settings).await,
        Command::Inspect(args) => inspect::execute(&args, settings).await,
        Command::Doctor(args) => doctor::execute(&args, settings).await,
        Command::Checkpoints(command) => checkpoints::execute(command, settings).await,
        Command::Config(args) => config::execute(&args, settings),
        Command::Keys(command) => keys::execute(command, settings).await,
        Command::Bench(args) => bench::execute(&args).await,
        Command::Completions(args) => completions::execute(&args),
    }
}

/// Prints the status of a run after a command that does not execute it, and the command that does.
fn tell_status(at: RunAt, json: bool, place: &dyn Target) -> Result<(), Failure> {
    let RunAt { run_id: run, status } = at;
    if json {
        output::json(&at)?;
    }
    output::tell(&format!("{run}: {status}"));
    if status == RunStatus::Paused {
        output::hint(&place.command(&format!("runs resume {run}")));
    } else if !status.is_terminal() {
        tell_carry_on(run, place);
    }
    Ok(())
}

/// Hints how to resume a run if no process executes it: in a data folder without a worker, runs stand still.
fn tell_carry_on(run: RunId, place: &dyn Target) {
    if !place.is_worked_at() {
        let resume = place.command(&format!("run --resume {run}"));
        output::hint(&format!("no worker runs now; carry it on with {resume}"));
    }
}
