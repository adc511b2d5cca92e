//! The `switchyard` command.
//!
//! - [`cli`]: the command line; every command's own arguments are in its file under [`commands`]
//! - [`drive`]: follows a run to its end, with progress and Ctrl-C
//! - [`progress`], [`output`], [`errors`]: all output; data goes to stdout, everything else to stderr
//! - [`escape`]: makes control characters in users' text visible
//! - [`serving`], [`stores`]: serve the API and open the stores, for `up`, `api` and `worker`
//! - [`target`]: the server or data folder that commands act on; [`store`]: opens the folder
//! - [`operation`]: repeats a change whose outcome is not known
//! - [`flags`], [`settings`]: the settings; [`logging`], [`observe`]: logs, metrics and traces

mod cli;
mod commands;
mod drive;
mod errors;
mod escape;
mod filter;
mod flags;
mod input;
mod logging;
mod observe;
mod operation;
mod optional;
mod output;
mod progress;
mod reasons;
mod serving;
mod settings;
mod sidecar;
mod store;
mod stores;
mod target;
mod waiting;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use settings::Settings;

/// A step makes many small, short-lived allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exits with the help or the error of the arguments. The error is escaped, because it quotes the arguments.
fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if error.use_stderr() && escape::text(&text) != text {
        output::tell(text.trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

fn main() -> ExitCode {
    let matches = cli::Cli::command().try_get_matches().unwrap_or_else(|error| refuse(&error));
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error));
    let settings = match Settings::load(&cli.globals, flags::given(&cli.globals, &matches)) {
        Ok(settings) => settings,
        Err(failure) => return failure.tell(),
    };
    logging::init(&settings);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return errors::Failure::store(format!("cannot start: {error}")).tell(),
    };
    let answer = runtime.block_on(async {
        drive::signals::survive_file_size_limit();
        commands::execute(cli.command, &settings).await
    });
    // Dropping the runtime would wait for the thread that still reads from the terminal.
    runtime.shutdown_background();
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
