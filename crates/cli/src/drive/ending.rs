//! Shows the end of a run.

use std::io::IsTerminal;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchyard_api::{NodesInOrder, RunView};
use switchyard_core::RunId;
use switchyard_core::error::RunError;
use switchyard_core::run::{NodeState, RunStatus};

use crate::errors::Failure;
use crate::output;
use crate::target::Target;

/// The document that `run --json` prints.
#[derive(Serialize)]
struct Document<'a> {
    run_id: RunId,
    status: RunStatus,
    output: &'a RawValue,
    error: &'a Option<RunError>,
    nodes: &'a NodesInOrder,
}

/// Prints the output, or the document; a run that did not succeed is a failure of the command.
pub(crate) fn show(view: RunView, json: bool, target: &dyn Target) -> Result<(), Failure> {
    let verdict = verdict(&view, target);
    tell_missing(&view);
    if json {
        document(view)?;
    } else if view.status == RunStatus::Succeeded {
        print(&view.output)?;
    }
    verdict
}

/// Warns about payloads that could not be loaded: the document has references in their places.
pub(crate) fn tell_missing(view: &RunView) {
    for missing in &view.missing {
        output::tell(&format!("warning: {} is missing: {}", missing.path, missing.reason));
    }
}

pub(crate) fn document(view: RunView) -> Result<(), Failure> {
    Ok(output::json(&contract(&trimmed(view)))?)
}

/// Prints the document of one of several runs, on one line.
pub(super) fn document_line(view: RunView) -> Result<(), Failure> {
    Ok(output::json_line(&contract(&trimmed(view)))?)
}

fn contract(view: &RunView) -> Document<'_> {
    Document {
        run_id: view.run_id,
        status: view.status,
        output: &view.output,
        error: &view.error,
        nodes: &view.nodes,
    }
}

/// Removes the hidden step that computes the output of the run, unless that step has not succeeded.
pub(crate) fn trimmed(mut view: RunView) -> RunView {
    view.nodes.0.retain(|(id, node)| &**id != "/output" || node.status != NodeState::Succeeded);
    view
}

fn print(text: &RawValue) -> Result<(), Failure> {
    // The text is parsed only to be indented on a terminal; a program gets it unchanged.
    match serde_json::from_str::<Value>(text.get()) {
        Ok(value) if std::io::stdout().is_terminal() => Ok(output::json_pretty(&value)?),
        _ => Ok(output::json_text(text.get())?),
    }
}

pub(super) fn verdict(view: &RunView, target: &dyn Target) -> Result<(), Failure> {
    let run = view.run_id;
    let why = view.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
    match view.status {
        RunStatus::Succeeded if view.missing.iter().any(|missing| missing.path == "output") => {
            Err(Failure::store(format!("{run} succeeded, and its output cannot be brought back")))
        }
        RunStatus::Succeeded => Ok(()),
        RunStatus::Cancelled => Err(Failure::refused(format!("{run} was cancelled{why}"))),
        status => Err(Failure::refused(format!("{run} {status}{why}"))
            .hint(target.command(&format!("runs retry {run}")))),
    }
}
