//! `switchyard completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::errors::Failure;
use crate::output;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard completions bash > /etc/bash_completion.d/switchyard")]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "switchyard", &mut script);
    Ok(output::line(String::from_utf8_lossy(&script).trim_end())?)
}
