//! Schedules and their next ticks.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::schedule::Schedule;
use switchyard_core::{RunId, Timestamp, time};

use crate::{Mutation, Operations, StoreError};

/// Stores schedules and the outcomes of their ticks.
#[async_trait]
pub trait Schedules: Operations {
    /// [`Mutation::PutSchedule`] without an operation.
    async fn put_schedule(&self, record: ScheduleRecord) -> Result<(), StoreError> {
        self.mutate(Mutation::PutSchedule(Box::new(record)), None).await.map(drop)
    }

    /// [`Mutation::RemoveSchedule`] without an operation. Returns whether the schedule existed.
    async fn remove_schedule(&self, name: &str) -> Result<bool, StoreError> {
        self.mutate(Mutation::RemoveSchedule { name: name.to_owned() }, None).await?.changed()
    }

    /// Advances a schedule to its next tick, if it is still at the tick that the caller saw. Returns whether it did:
    /// of several servers, one succeeds.
    async fn advance_schedule(
        &self,
        name: &str,
        seen: Option<Timestamp>,
        next: Option<Timestamp>,
        last_run: Option<RunId>,
    ) -> Result<bool, StoreError>;

    async fn schedule(&self, name: &str) -> Result<Option<ScheduleRecord>, StoreError>;

    /// Every schedule, ordered by name.
    async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError>;

    /// Records the outcome of a tick; the newest [`STARTS_KEPT`] of a schedule are kept. Recording a tick again
    /// replaces its outcome and increments [`ScheduleStart::tries`], unless the tick is recorded as started already.
    async fn note_start(&self, schedule: &str, start: ScheduleStart) -> Result<(), StoreError>;

    /// The outcomes of a schedule's ticks, newest first.
    async fn schedule_starts(&self, schedule: &str, limit: usize) -> Result<Vec<ScheduleStart>, StoreError>;
}

/// How many outcomes of ticks are kept for each schedule.
pub const STARTS_KEPT: usize = 100;

/// A schedule, its next tick and its newest run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    pub schedule: Schedule,
    /// The next tick; `None` if there is none.
    #[serde(with = "time::rfc3339::option")]
    pub next_at: Option<Timestamp>,
    /// The run of the schedule's newest start.
    pub last_run: Option<RunId>,
}

/// The outcome of a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStart {
    pub tick: Timestamp,
    /// The time of the newest try.
    pub at: Timestamp,
    /// How often the tick was tried.
    pub tries: u32,
    /// The caller that started the tick, if the schedule did not.
    pub by: Option<Arc<str>>,
    pub outcome: StartOutcome,
}

/// The outcome of starting a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartOutcome {
    Started(RunId),
    /// The run of an earlier tick had not ended.
    Skipped,
    /// Why no run was started. The schedule tries again.
    Failed(Arc<str>),
}

impl StartOutcome {
    /// The name of the outcome as archives store it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Started(_) => "started",
            Self::Skipped => "skipped",
            Self::Failed(_) => "failed",
        }
    }

    /// Builds an outcome from the stored name, run and error. `None` if they do not fit together.
    pub fn from_stored(name: &str, run: Option<RunId>, error: Option<&str>) -> Option<Self> {
        match (name, run, error) {
            ("started", Some(run), _) => Some(Self::Started(run)),
            ("skipped", _, _) => Some(Self::Skipped),
            ("failed", _, Some(error)) => Some(Self::Failed(error.into())),
            _ => None,
        }
    }

    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Started(run) => Some(*run),
            Self::Skipped | Self::Failed(_) => None,
        }
    }

    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Started(_) | Self::Skipped => None,
        }
    }
}
