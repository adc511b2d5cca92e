//! `switchyard validate`

use serde::Serialize;
use switchyard_base::Diagnostic;
use switchyard_core::Hash;
use switchyard_lang::Program;

use crate::errors::{Exit, Failure};
use crate::input;
use crate::output;

/// Check workflow files without running them
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  switchyard validate examples/hello.yaml")]
pub(crate) struct Args {
    /// Workflow files, YAML or JSON; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// Print a list of what was found, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    file: String,
    valid: bool,
    name: Option<String>,
    nodes: Option<usize>,
    definition: Option<Hash>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Problem {
    /// The file that it is in: the checked one, or one that it includes.
    file: Option<String>,
    #[serde(flatten)]
    diagnostic: Diagnostic,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let mut all = Vec::new();
    for file in &args.files {
        let found = match input::program(file) {
            Ok(program) => Found::good(file, &program),
            Err(failure) => {
                if !args.json {
                    failure.tell();
                }
                Found::bad(file, &failure)
            }
        };
        if found.valid && !args.json {
            let nodes = found.nodes.unwrap_or(0);
            output::line(&format!("{file}: ok, {nodes} node{}", if nodes == 1 { "" } else { "s" }))?;
        }
        all.push(found);
    }
    if args.json {
        output::json(&all)?;
    }
    if all.iter().all(|found| found.valid) { Ok(()) } else { Err(Failure::silent(Exit::Usage)) }
}

impl Found {
    fn good(file: &str, program: &Program) -> Self {
        Self {
            file: file.to_owned(),
            valid: true,
            name: Some(program.ir.name.to_string()),
            nodes: Some(program.ir.steps().count()),
            definition: Some(program.hash),
            problems: Vec::new(),
        }
    }

    fn bad(file: &str, failure: &Failure) -> Self {
        let problems = failure.problems().into_iter().map(|(file, diagnostic)| Problem { file, diagnostic });
        Self {
            file: file.to_owned(),
            valid: false,
            name: None,
            nodes: None,
            definition: None,
            problems: problems.collect(),
        }
    }
}
