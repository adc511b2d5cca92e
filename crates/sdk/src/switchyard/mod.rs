//! Submits, follows and controls runs of an engine in this process.

mod approvals;
mod builder;
mod control;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use switchyard_core::RunId;
use switchyard_host::embedded::Embedded;
use switchyard_runtime::{Engine, Principal, Recovered, RunView, Submission, ids};
use switchyard_store::WorkflowRecord;
use tokio::sync::watch;

use crate::remote::RemoteSwitchyardBuilder;
use crate::workflow::Resolved;
use crate::{Error, RunEvents, RunOutcome, SubmitOptions, Workflow, outcome};

pub use approvals::PendingApproval;
pub use builder::SwitchyardBuilder;

/// An open data folder in which this process works.
///
/// Close it with [`Switchyard::shut_down`]. Dropping it loses nothing either, but its background tasks hold the folder
/// until the tokio runtime ends.
#[derive(Debug)]
pub struct Switchyard {
    embedded: Embedded,
    trouble: watch::Receiver<Option<String>>,
    grace: Duration,
}

impl Switchyard {
    /// Creates a builder for a server instead of an engine in this process: it submits, follows and controls runs
    /// there. A [`Worker`](crate::Worker) runs handlers for a server.
    pub fn connect(url: &str) -> RemoteSwitchyardBuilder {
        RemoteSwitchyardBuilder::new(url)
    }

    /// Creates a builder for a Switchyard with its state in this folder.
    pub fn builder(data: impl Into<PathBuf>) -> SwitchyardBuilder {
        SwitchyardBuilder::new(data.into())
    }

    /// Submits a run and waits for its end.
    ///
    /// An error means that the run was not accepted, or that its outcome is unknown; a failed run is an `Ok` that
    /// contains the failure.
    pub async fn run<T: DeserializeOwned>(
        &self,
        workflow: impl Into<Workflow>,
        input: impl Serialize,
    ) -> Result<RunOutcome<T>, Error> {
        let run = self.submit(workflow, input).await?;
        self.wait(run).await
    }

    /// Submits a run. When this returns, the run is durable and will end.
    pub async fn submit(&self, workflow: impl Into<Workflow>, input: impl Serialize) -> Result<RunId, Error> {
        self.submit_with(workflow, input, SubmitOptions::new()).await
    }

    /// Submits a run with options.
    pub async fn submit_with(
        &self,
        workflow: impl Into<Workflow>,
        input: impl Serialize,
        options: SubmitOptions,
    ) -> Result<RunId, Error> {
        let input = to_value(input)?;
        let Resolved { program, version } = workflow.into().resolve(self.engine()).await?;
        let submission = Submission { workflow_version: version, ..Submission::new(program, input) };
        Ok(self.engine().submit(&caller(), options.apply(submission)).await?.run())
    }

    /// Waits for the end of a run. Returns at once if the run has already ended.
    pub async fn wait<T: DeserializeOwned>(&self, run: RunId) -> Result<RunOutcome<T>, Error> {
        let mut trouble = self.trouble.clone();
        tokio::select! {
            ended = self.engine().wait_for_end(run) => ended?,
            why = said(&mut trouble) => return Err(Error::Trouble(why)),
        }
        outcome::read(self.view(run).await?)
    }

    /// Follows the events of a run after event `after` (0: from the beginning), then live, to its end.
    pub fn follow(&self, run: RunId, after: u64) -> RunEvents {
        RunEvents::here(self.engine().follow(run, after))
    }

    /// Gets the current state of a run: its status, and every node with attempts, output and error.
    pub async fn view(&self, run: RunId) -> Result<RunView, Error> {
        let state = self.engine().state(run).await?;
        Ok(self.engine().history().view(&state).await?)
    }

    /// Registers a workflow under its own name: as a new version, unless it equals the newest.
    pub async fn register_workflow(&self, workflow: impl Into<Workflow>) -> Result<WorkflowRecord, Error> {
        let engine = self.engine();
        let Resolved { program, .. } = workflow.into().resolve(engine).await?;
        Ok(engine.register_workflow(&caller(), &ids::operation_id(), &program).await?)
    }

    /// The unfinished runs that were in the folder when it was opened, and those that could not be recovered.
    pub fn recovered(&self) -> &Recovered {
        self.embedded.recovered()
    }

    /// The engine, for operations that this type lacks: patches, forks, histories, lists.
    pub fn engine(&self) -> &Engine {
        self.embedded.engine()
    }

    /// Shuts down gracefully: no further node starts, handlers may finish within the grace period, and the other tasks
    /// are released. Unfinished runs continue when the folder is opened again.
    pub async fn shut_down(self) {
        self.embedded.shut_down(self.grace).await;
    }
}

/// The caller of methods that take no name.
fn caller() -> Principal {
    Principal::local("sdk")
}

pub(crate) fn to_value(value: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(Error::Value)
}

/// Waits until the store fails, and returns the reason.
async fn said(trouble: &mut watch::Receiver<Option<String>>) -> String {
    let found = trouble.wait_for(Option::is_some).await.map(|why| (*why).clone());
    match found {
        Ok(Some(why)) => why,
        // The sender is gone, which happens only at shutdown.
        _ => std::future::pending().await,
    }
}
