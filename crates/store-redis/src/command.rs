//! Commands of people and programs: applied once for each operation id, and archived before they are answered.
//!
//! Redis may lose its last writes, and an answered command must not be among them. So a process checks that the archive
//! takes writes before it writes to Redis; after the write, the answer waits for the shipper, which ships at once. The
//! process looks the operation up in the archive by its id, because a run that was rebuilt meanwhile has other events
//! under the same numbers.

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
/// How often to look for it without news: the shipper may have died, or Redis may have lost the command.
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
                // The run may have just ended: this ships its end, so that the caller finds it in the archive.
                self.in_flight(run).await?;
                Err(StoreError::UnknownRun(run))
            }
        }
    }

    /// Checks that the archive takes writes: while it does not, a command is refused before Redis is changed.
    async fn archive_takes_writes(&self) -> Result<(), StoreError> {
        let answer = self.archive.append(Vec::new()).await;
        self.note_archive(&answer);
        answer.map_err(StoreError::not_applied)
    }

    /// News of archived events of a run: from this process if it ships the outbox, else from the process that does.
    fn news_of(&self, run: RunId) -> watch::Receiver<Change> {
        match self.shipper.fence() {
            None => self.waiters.follow(run),
            Some(_) => self.waiters.follow_here(run),
        }
    }

    /// Waits until a command that Redis has is archived. Any error from here on leaves the outcome unknown.
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

    /// Waits until an event of the run is archived, at most [`LOOK_EVERY`]. A process without the duty ships the outbox
    /// itself, unless another process has the lock.
    async fn until_shipped(&self, news: &mut watch::Receiver<Change>) {
        if !self.shipper.is_on_duty() && matches!(self.ship().await, Ok(Shipped::Events(_))) {
            return;
        }
        // A closed channel means that the store is being dropped.
        let _ = timeout(LOOK_EVERY, news.changed()).await;
    }

    async fn is_archived(&self, run: RunId, operation: &Operation) -> Result<bool, StoreError> {
        Ok(self.archive.run_operation(run, &operation.id).await?.is_some())
    }

    /// Whether neither Redis nor the archive has an operation. Asks Redis first: an operation leaves Redis only after
    /// it was archived.
    async fn has_lost(&self, run: RunId, operation: &Operation) -> Result<bool, StoreError> {
        let mut look = redis::cmd("HEXISTS");
        look.arg(self.keys.operations(run)).arg(operation.id.as_str());
        let held: bool = self.client.query(&look).await?;
        Ok(!held && !self.is_archived(run, operation).await?)
    }
}
