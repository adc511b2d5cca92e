//! The run under test.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_core::{ApprovalId, RunId, Timestamp};
use switchyard_runtime::RunView;
use switchyard_store::Clock;
use tempfile::TempDir;

use super::switchyard::Setup;
use super::{ObservedRun, TestError, calm};
use crate::{NodeState, RunOutcome, Switchyard, outcome};

/// A run in a Switchyard of its own, whose clock stands still until the test moves it.
#[derive(Debug)]
pub struct TestRun {
    pub(super) switchyard: Switchyard,
    pub(super) run: RunId,
    pub(super) setup: Setup,
    // After `switchyard`, so that the folder is dropped last.
    pub(super) folder: TempDir,
}

impl TestRun {
    /// The id of the run.
    pub fn id(&self) -> RunId {
        self.run
    }

    /// The Switchyard of the run, for further runs and for operations without a helper here.
    pub fn switchyard(&self) -> &Switchyard {
        &self.switchyard
    }

    /// The current time of the test clock.
    pub fn now(&self) -> Timestamp {
        self.setup.clock.now()
    }

    /// Advances the clock, stopping at every timer that becomes due on the way. Returns when no run can progress any
    /// more.
    pub async fn advance(&self, by: Duration) -> Result<(), TestError> {
        let target = self.now().plus(by);
        while let Some(next) = self.settle().await?.filter(|next| *next <= target) {
            self.set_clock(next);
        }
        self.set_clock(target);
        Ok(())
    }

    /// Moves the clock in one jump, then fires the timers that are due. Does not wait for handlers: use it to test what
    /// happens while a handler runs, such as a deadline.
    pub async fn jump(&self, by: Duration) -> Result<(), TestError> {
        self.setup.clock.advance(by);
        self.switchyard.engine().fire_timers().await?;
        Ok(())
    }

    /// Runs to the end of the run: whenever no run can progress, it moves the clock to the next timer. An approval or a
    /// signal that does not arrive times out; without a time-out, this returns [`TestError::Stuck`].
    pub async fn run_to_end<T: DeserializeOwned>(&self) -> Result<RunOutcome<T>, TestError> {
        loop {
            let next = self.settle().await?;
            if !self.switchyard.engine().in_flight(self.run).await? {
                return Ok(outcome::read(self.switchyard.view(self.run).await?)?);
            }
            match next {
                Some(next) => self.set_clock(next),
                None => return Err(self.stuck().await?),
            }
        }
    }

    /// Approves the pending approval of this node.
    pub async fn approve(&self, node: &str, by: &str, comment: &str) -> Result<(), TestError> {
        let approval = self.asked_by(node).await?;
        self.switchyard.approve(&approval, by, comment).await?;
        Ok(())
    }

    /// Rejects the pending approval of this node.
    pub async fn reject(&self, node: &str, by: &str, comment: &str) -> Result<(), TestError> {
        let approval = self.asked_by(node).await?;
        self.switchyard.reject(&approval, by, comment).await?;
        Ok(())
    }

    /// Sends a signal to the run.
    pub async fn signal(&self, name: &str, payload: impl Serialize) -> Result<(), TestError> {
        Ok(self.switchyard.signal(self.run, name, payload).await?)
    }

    /// Cancels the run.
    pub async fn cancel(&self, by: &str, reason: &str) -> Result<(), TestError> {
        Ok(self.switchyard.cancel(self.run, by, reason).await?)
    }

    /// Waits until no run can progress any more, and returns a snapshot of the run.
    pub async fn look(&self) -> Result<ObservedRun, TestError> {
        self.settle().await?;
        Ok(ObservedRun(self.switchyard.view(self.run).await?))
    }

    /// Shuts the Switchyard down and reopens its folder, as a new process would.
    pub async fn restart(self) -> Result<Self, TestError> {
        let Self { switchyard, run, setup, folder } = self;
        switchyard.shut_down().await;
        let switchyard = setup.open(folder.path()).await?;
        Ok(Self { switchyard, run, setup, folder })
    }

    async fn settle(&self) -> Result<Option<Timestamp>, TestError> {
        match tokio::time::timeout(self.setup.real_timeout, calm::settle(self.switchyard.engine())).await {
            Ok(next) => Ok(next?),
            Err(_) => {
                let runs = nodes(&self.switchyard.view(self.run).await?, NodeState::Running);
                Err(TestError::Busy { run: self.run, runs })
            }
        }
    }

    fn set_clock(&self, to: Timestamp) {
        self.setup.clock.advance(to.since(self.now()));
    }

    async fn stuck(&self) -> Result<TestError, TestError> {
        let waits = nodes(&self.switchyard.view(self.run).await?, NodeState::Waiting);
        Ok(TestError::Stuck { run: self.run, waits })
    }

    async fn asked_by(&self, node: &str) -> Result<ApprovalId, TestError> {
        self.settle().await?;
        let pending = self.switchyard.approvals_of(self.run).await?;
        let asked = pending.into_iter().find(|approval| *approval.node == *node);
        asked
            .map(|approval| approval.id)
            .ok_or_else(|| TestError::NotAsked { run: self.run, node: node.to_owned() })
    }
}

/// A text that lists the run's nodes in this state.
fn nodes(view: &RunView, state: NodeState) -> String {
    let told = view.nodes.0.iter().filter(|(_, node)| node.status == state).map(|(id, node)| {
        match &node.waiting_for {
            Some(what) => format!("`{id}` waits for {what}"),
            None => format!("`{id}` is {}", state.as_str()),
        }
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { format!("it is {}", view.status) } else { told.join(", ") }
}
