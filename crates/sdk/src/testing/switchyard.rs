//! Configures a test.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_core::Timestamp;
use switchyard_store::ManualClock;

use super::{TestError, TestRun};
use crate::{Context, HandlerError, Switchyard, SwitchyardBuilder, Workflow};

/// 2026-01-01T00:00:00Z.
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// How long a handler may take by default before the test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// Configures a Switchyard for one test: its handlers, and the start of its clock.
#[derive(Debug)]
#[must_use = "nothing happens until `start`"]
pub struct TestSwitchyard {
    builder: SwitchyardBuilder,
    workflows: Vec<Workflow>,
    now: Timestamp,
    real_timeout: Duration,
}

impl Default for TestSwitchyard {
    fn default() -> Self {
        Self::new()
    }
}

impl TestSwitchyard {
    /// Creates a configuration without handlers, with the clock at the beginning of 2026.
    pub fn new() -> Self {
        // `start` creates the folder, so that this cannot fail.
        Self { builder: Switchyard::builder(""), workflows: Vec::new(), now: START, real_timeout: PATIENCE }
    }

    /// Adds a handler, as [`SwitchyardBuilder::handler`] does.
    pub fn handler<I, O, F, Fut>(mut self, name: &str, function: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        F: Fn(I, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, HandlerError>> + Send + 'static,
    {
        self.builder = self.builder.handler(name, function);
        self
    }

    /// Registers a workflow that the one under test starts by its name.
    pub fn workflow(mut self, workflow: impl Into<Workflow>) -> Self {
        self.workflows.push(workflow.into());
        self
    }

    /// Sets the start of the clock.
    pub fn starting_at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// Sets how long handlers may take in real time before the test fails with [`TestError::Busy`]; the default is 30
    /// seconds.
    pub fn real_timeout(mut self, real_timeout: Duration) -> Self {
        self.real_timeout = real_timeout;
        self
    }

    /// Opens the Switchyard and submits the run under test.
    pub async fn start(
        self,
        workflow: impl Into<Workflow>,
        input: impl Serialize,
    ) -> Result<TestRun, TestError> {
        let folder = tempfile::tempdir().map_err(TestError::Folder)?;
        let clock = ManualClock::starting_at(self.now);
        let setup = Setup { builder: self.builder, clock, real_timeout: self.real_timeout };
        let switchyard = setup.open(folder.path()).await?;
        for workflow in self.workflows {
            switchyard.register_workflow(workflow).await?;
        }
        let run = switchyard.submit(workflow, input).await?;
        Ok(TestRun { switchyard, run, setup, folder })
    }
}

/// The configuration with which the Switchyard is opened, the first time and after a restart.
#[derive(Debug)]
pub(super) struct Setup {
    builder: SwitchyardBuilder,
    pub(super) clock: ManualClock,
    pub(super) real_timeout: Duration,
}

impl Setup {
    pub(super) async fn open(&self, folder: &Path) -> Result<Switchyard, TestError> {
        let builder = self.builder.clone().data(folder).grace(Duration::ZERO);
        Ok(builder.clock(Arc::new(self.clock.clone())).open().await?)
    }
}
