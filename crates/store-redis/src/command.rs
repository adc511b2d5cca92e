//! Commands of people and programs: once for each operation id, and archived before they are answered.
//!
//! Redis may lose what it was told last, and a decision that was answered must not be among that. So the archive is
//! asked whether it is there before anything is written; after the write the answer waits for the shipper, which
//! ships at once. That the archive has the operation is looked up by its id: a run that was rebuilt meanwhile has
//! other events under the same numbers.

use std::time::Duration;

use switchyard_core::RunId;
use switchyard_core::in_flight::{Command, InFlight};
use switchyard_core::run::Operation;
use switchyard_store::{Change, HotStore, StoreError};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::outbox::Shipped;
use crate::slow_path::ReadSet;
use crate::store::RedisStore;

/// How long the answer to a command waits for the archive.
const ARCHIVED_WITHIN: Duration = Duration::from_secs(7);
/// How often it is looked for if no news comes: its shipper may have died, or Redis may have lost it.
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl RedisStore {
    pub(crate) async fn carry_out(
        &self,
        run: RunId,
        operation: &Operation,
        command: &Command,
    ) -> Result<(), StoreError> {
        self.archive_takes_writes().await?;
        let mut read_set = ReadSet { operation: Some((run, operation.id.clone())), ..ReadSet::run(run) };
        if let Command::Patch { patched, .. } = command {
            read_set.graphs.insert(patched.definition);
        }
        let news = self.news_of(run);
        let decide = |in_flight: &mut InFlight, now, out: &mut Vec<_>| {
            in_flight.command(run, operation, command.clone(), now, out)
        };
        match self.decide(read_set, decide).await? {
            Some(Ok(_)) => self.until_archived(run, operation, news).await,
            Some(Err(refusal)) => Err(refusal.into()),
            None => {
                // It may have ended a moment ago: a look into the archive must find that now.
                self.in_flight(run).await?;
                Err(StoreError::UnknownRun(run))
            }
        }
    }

    /// While the archive is away a command is refused before anything is written.
    async fn archive_takes_writes(&self) -> Result<(), StoreError> {
        let answer = self.archive.append(Vec::new()).await;
        self.note_archive(&answer);
        answer.map_err(StoreError::not_applied)
    }

    /// News of what is archived of a run: from this process if it ships the outbox, else published by the process that does.
    fn news_of(&self, run: RunId) -> watch::Receiver<Change> {
        match self.shipper.fence() {
            None => self.waiters.follow(run),
            Some(_) => self.waiters.follow_here(run),
        }
    }

    /// The command is in Redis: from here on it is not known to be without effect.
    async fn until_archived(
        &self,
        run: RunId,
        operation: &Operation,
        mut news: watch::Receiver<Change>,
    ) -> Result<(), StoreError> {
        let begun = Instant::now();
        while begun.elapsed() < ARCHIVED_WITHIN {
            self.until_shipped(&mut news).await;
            if self.is_archived(run, operation).await == Ok(true) {
                return Ok(());
            }
            if self.has_lost(run, operation).await == Ok(true) {
                return Err(StoreError::outcome_unknown("Redis lost a command before it was archived"));
            }
        }
        Err(StoreError::outcome_unknown("a command is in Redis and was not archived in time"))
    }

    /// Returns when something of the run was archived, or after a while. A process without the duty ships by itself
    /// unless another has the lock.
    async fn until_shipped(&self, news: &mut watch::Receiver<Change>) {
        if !self.shipper.is_on_duty() && matches!(self.ship().await, Ok(Shipped::Events(_))) {
            return;
        }
        // A closed channel means that the store goes away.
        let _ = timeout(LOOK_EVERY, news.changed()).await;
    }

    async fn is_archived(&self, run: RunId, operation: &Operation) -> Result<bool, StoreError> {
        Ok(self.archive.run_operation(run, &operation.id).await?.is_some())
    }

    /// An operation leaves Redis after it was archived. One that is in neither, looked for in that order, is lost.
    async fn has_lost(&self, run: RunId, operation: &Operation) -> Result<bool, StoreError> {
        let mut look = redis::cmd("HEXISTS");
        look.arg(self.keys.operations(run)).arg(operation.id.as_str());
        let held: bool = self.client.query(&look).await?;
        Ok(!held && !self.is_archived(run, operation).await?)
    }
}
