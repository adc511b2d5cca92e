//! What is shown when a run has ended.

use std::io::IsTerminal;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchyard_core::RunId;
use switchyard_core::error::RunError;
use switchyard_core::run::{NodeState, Run, RunStatus};
use switchyard_runtime::{History, RunView};

use crate::errors::Failure;
use crate::output;
use crate::settings::Settings;

/// The contract of `run --json`.
#[derive(Serialize)]
struct Document<'a, N> {
    run_id: RunId,
    status: RunStatus,
    output: &'a RawValue,
    error: &'a Option<RunError>,
    nodes: &'a N,
}

/// Prints the output, or the document; a run that did not succeed is a failure of the command.
pub(crate) async fn show(
    history: &History,
    run: &Run,
    json: bool,
    settings: &Settings,
) -> Result<(), Failure> {
    if json {
        document(history, run).await?;
    } else if run.status() == RunStatus::Succeeded {
        output(history, run).await?;
    }
    verdict(run, settings)
}

pub(crate) async fn document(history: &History, run: &Run) -> Result<(), Failure> {
    Ok(output::json(&contract(&view(history, run).await?))?)
}

/// One of several: never more than a line.
pub(super) async fn document_line(history: &History, run: &Run) -> Result<(), Failure> {
    Ok(output::json_line(&contract(&view(history, run).await?))?)
}

fn contract(view: &RunView) -> impl Serialize + '_ {
    Document {
        run_id: view.run_id,
        status: view.status,
        output: &view.output,
        error: &view.error,
        nodes: &view.nodes,
    }
}

/// A run without the hidden step that computes its output, unless there is something to see.
pub(crate) async fn view(history: &History, run: &Run) -> Result<RunView, Failure> {
    let mut view = history.view(run).await?;
    view.nodes.0.retain(|(id, node)| &**id != "/output" || node.status != NodeState::Succeeded);
    Ok(view)
}

async fn output(history: &History, run: &Run) -> Result<(), Failure> {
    let text =
        history.payloads().load_text(&run.output).await.map_err(switchyard_runtime::EngineError::from)?;
    // Parsed only to be indented: a program gets the text as it is.
    match serde_json::from_str::<Value>(text.get()) {
        Ok(value) if std::io::stdout().is_terminal() => Ok(output::json_pretty(&value)?),
        _ => Ok(output::line(text.get())?),
    }
}

pub(super) fn verdict(run: &Run, settings: &Settings) -> Result<(), Failure> {
    let why = run.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
    match run.status() {
        RunStatus::Succeeded => Ok(()),
        RunStatus::Cancelled => Err(Failure::refused(format!("{} was cancelled{why}", run.id))),
        status => Err(Failure::refused(format!("{} {status}{why}", run.id))
            .hint(settings.command(&format!("runs retry {}", run.id)))),
    }
}
