//! `switchyard runs …`

mod control;
mod delete;
mod events;
mod fork;
pub(crate) mod list;
mod logs;
mod retry;
mod show;
mod watch;
mod why;

use crate::errors::Failure;
use crate::settings::Settings;

/// Look at runs, and change their course
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(Box<list::Args>),
    Show(show::Args),
    Why(why::Args),
    Events(events::Args),
    Logs(logs::Args),
    Watch(watch::Args),
    Cancel(control::CancelArgs),
    Pause(control::PauseArgs),
    Resume(control::ResumeArgs),
    Signal(control::SignalArgs),
    Retry(retry::Args),
    Fork(fork::Args),
    Delete(delete::Args),
    Tombstones(delete::TombstonesArgs),
}

pub(crate) async fn execute(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list::execute(*args, settings).await,
        Command::Show(args) => show::execute(&args, settings).await,
        Command::Why(args) => why::execute(&args, settings).await,
        Command::Events(args) => events::execute(&args, settings).await,
        Command::Logs(args) => logs::execute(&args, settings).await,
        Command::Watch(args) => watch::execute(&args, settings).await,
        Command::Cancel(args) => control::cancel(&args, settings).await,
        Command::Pause(args) => control::pause(&args, settings).await,
        Command::Resume(args) => control::resume(&args, settings).await,
        Command::Signal(args) => control::signal(&args, settings).await,
        Command::Retry(args) => retry::execute(&args, settings).await,
        Command::Delete(args) => delete::execute(&args, settings).await,
        Command::Tombstones(args) => delete::tombstones(&args, settings).await,
        Command::Fork(args) => fork::execute(args, settings).await,
    }
}
