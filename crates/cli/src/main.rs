//! The `switchyard` command.
//!
//! - [`cli`]: what can be typed; every command's own arguments are in its file under [`commands`]
//! - [`drive`]: a run followed to its end, with progress and Ctrl-C
//! - [`progress`], [`output`], [`errors`]: all that is shown; data goes to stdout, everything else to stderr
//! - [`escape`]: control characters of users, made visible
//! - [`serving`], [`stores`]: what `up`, `api` and `worker` stand on and do
//! - [`target`]: where commands act, a server or a data folder; [`store`]: opening the folder
//! - [`operation`]: repeating a change whose outcome is not known
//! - [`flags`], [`settings`]: what is set; [`logging`], [`observe`]: who is told what happens

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

/// Much of a step is many small things that live for a moment.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ends with help or with what is wrong with the arguments, which a script may have filled in.
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
    // Not dropped in the ordinary way: that would wait for the thread that still reads from the terminal.
    runtime.shutdown_background();
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
