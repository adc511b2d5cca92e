//! Submits, follows and controls runs on a server.

mod control;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_api::{RunView, WorkflowRecord};
use switchyard_client::{Client, ClientBuilder, Submission};
use switchyard_core::RunId;

use crate::switchyard::to_value;
use crate::workflow::ForServer;
use crate::{Error, RunEvents, RunOutcome, SubmitOptions, Workflow, outcome};

/// Configures a [`RemoteSwitchyard`].
#[derive(Clone, Debug)]
#[must_use = "nothing is asked until `open`"]
pub struct RemoteSwitchyardBuilder(ClientBuilder);

impl RemoteSwitchyardBuilder {
    pub(crate) fn new(url: &str) -> Self {
        Self(Client::builder(url))
    }

    /// Sets the API key of this program.
    pub fn api_key(self, key: impl Into<String>) -> Self {
        Self(self.0.api_key(key))
    }

    /// Checks that the server answers.
    pub async fn open(self) -> Result<RemoteSwitchyard, Error> {
        let client = self.0.build()?;
        client.server().await?;
        Ok(RemoteSwitchyard { client })
    }
}

/// A server, with the same methods as a [`Switchyard`](crate::Switchyard) in this process. Cloning is cheap.
///
/// [`Worker`](crate::Worker)s execute its `function` nodes, in this process or in others.
#[derive(Clone, Debug)]
pub struct RemoteSwitchyard {
    client: Client,
}

impl RemoteSwitchyard {
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

    /// Submits a run with options. If the connection breaks, the client repeats the submission; the server accepts it
    /// once.
    pub async fn submit_with(
        &self,
        workflow: impl Into<Workflow>,
        input: impl Serialize,
        options: SubmitOptions,
    ) -> Result<RunId, Error> {
        let input = to_value(input)?;
        let submission = match workflow.into().for_server()? {
            ForServer::Definition(definition) => Submission::definition(definition, input),
            ForServer::Named { name, version } => {
                let named = Submission::named(&name, input);
                version.into_iter().fold(named, Submission::version)
            }
        };
        Ok(self.client.submit(&options.apply_remote(submission)).await?.run_id)
    }

    /// Waits for the end of a run, also across restarts of the server. Returns at once if the run has already ended.
    pub async fn wait<T: DeserializeOwned>(&self, run: RunId) -> Result<RunOutcome<T>, Error> {
        let view = self.view(run).await?;
        if view.status.is_terminal() {
            return outcome::read(view);
        }
        let mut events = self.client.follow(run, view.last_seq);
        while events.next().await?.is_some_and(|event| !event.is_end()) {}
        outcome::read(self.view(run).await?)
    }

    /// Follows the events of a run after event `after` (0: from the beginning), then live, to its end.
    pub fn follow(&self, run: RunId, after: u64) -> RunEvents {
        RunEvents::at_server(self.client.follow(run, after))
    }

    /// Gets the current state of a run: its status, and every node with attempts, output and error.
    pub async fn view(&self, run: RunId) -> Result<RunView, Error> {
        Ok(self.client.run(run).await?)
    }

    /// Registers a workflow under its own name: as a new version, unless it equals the newest.
    pub async fn register_workflow(&self, workflow: impl Into<Workflow>) -> Result<WorkflowRecord, Error> {
        match workflow.into().for_server()? {
            ForServer::Definition(definition) => Ok(self.client.register_workflow(&definition).await?),
            ForServer::Named { name, version } => Ok(self.client.workflow(&name, version).await?.record),
        }
    }

    /// The HTTP client, for operations that this type lacks: patches, forks, schedules, lists.
    pub fn client(&self) -> &Client {
        &self.client
    }
}
