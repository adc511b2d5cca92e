//! An engine in this process, and what a program does with it.

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
/// Leave it with [`Switchyard::shut_down`]. One that is dropped instead loses nothing either, but what it started
/// holds the folder until the tokio runtime ends.
#[derive(Debug)]
pub struct Switchyard {
    embedded: Embedded,
    trouble: watch::Receiver<Option<String>>,
    grace: Duration,
}

impl Switchyard {
    /// The same for a server: runs are submitted to it, followed and controlled there. Handlers for it are a
    /// [`Worker`](crate::Worker).
    pub fn connect(url: &str) -> RemoteSwitchyardBuilder {
        RemoteSwitchyardBuilder::new(url)
    }

    /// With its state in this folder, not open yet.
    pub fn builder(data: impl Into<PathBuf>) -> SwitchyardBuilder {
        SwitchyardBuilder::new(data.into())
    }

    /// Submits a run and waits for its end.
    ///
    /// An error means that the run was not accepted, or that its end is not known; a run that failed is an `Ok` with
    /// the failure in it.
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

    /// The same with a key, a deadline, a limit.
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

    /// Waits for the end of a run, which may be one that ended long ago.
    pub async fn wait<T: DeserializeOwned>(&self, run: RunId) -> Result<RunOutcome<T>, Error> {
        let mut trouble = self.trouble.clone();
        tokio::select! {
            ended = self.engine().wait_for_end(run) => ended?,
            why = said(&mut trouble) => return Err(Error::Trouble(why)),
        }
        outcome::read(self.view(run).await?)
    }

    /// The events of a run, from after event `after` (0: from its beginning), then live, to its end.
    pub fn follow(&self, run: RunId, after: u64) -> RunEvents {
        RunEvents::here(self.engine().follow(run, after))
    }

    /// A run as it is now: its status, and every node with attempts, output and error.
    pub async fn view(&self, run: RunId) -> Result<RunView, Error> {
        let state = self.engine().state(run).await?;
        Ok(self.engine().history().view(&state).await?)
    }

    /// Gives a workflow its own name as a registered one: a new version, unless the newest is the same already.
    pub async fn register_workflow(&self, workflow: impl Into<Workflow>) -> Result<WorkflowRecord, Error> {
        let engine = self.engine();
        let Resolved { program, .. } = workflow.into().resolve(engine).await?;
        Ok(engine.register_workflow(&caller(), &ids::operation_id(), &program).await?)
    }

    /// The unfinished runs that were found when the folder was opened, and those that could not be taken up.
    pub fn recovered(&self) -> &Recovered {
        self.embedded.recovered()
    }

    /// Everything that the engine can do and this type has no word for: patches, forks, histories, lists.
    pub fn engine(&self) -> &Engine {
        self.embedded.engine()
    }

    /// Stops in order: no further node starts, handlers may finish for the grace, the rest is handed back. What is
    /// unfinished goes on when the folder is opened again.
    pub async fn shut_down(self) {
        self.embedded.shut_down(self.grace).await;
    }
}

/// The program around this, where it gives no name.
fn caller() -> Principal {
    Principal::local("sdk")
}

pub(crate) fn to_value(value: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(Error::Value)
}

/// What keeps the store from answering, once something does.
async fn said(trouble: &mut watch::Receiver<Option<String>>) -> String {
    let found = trouble.wait_for(Option::is_some).await.map(|why| (*why).clone());
    match found {
        Ok(Some(why)) => why,
        // The worker is gone, which only happens when it is shut down.
        _ => std::future::pending().await,
    }
}
