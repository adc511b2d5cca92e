//! `switchyard schema`

use crate::errors::Failure;
use crate::output;

/// Print the JSON Schema of workflow files, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard schema > switchyard.schema.json")]
pub(crate) struct Args {}

pub(crate) fn execute(_: &Args) -> Result<(), Failure> {
    Ok(output::json_pretty(&switchyard_lang::json_schema())?)
}
