//! Schedules and their next ticks.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use switchyard_core::schedule::Schedule;
use switchyard_core::{RunId, Timestamp, time};

use crate::{Mutation, Operations, StoreError};

/// Workflows that start by themselves.
#[async_trait]
pub trait Schedules: Operations {
    /// [`Mutation::PutSchedule`] without an operation.
    async fn put_schedule(&self, record: ScheduleRecord) -> Result<(), StoreError> {
        self.mutate(Mutation::PutSchedule(Box::new(record)), None).await.map(drop)
    }

    /// [`Mutation::RemoveSchedule`] without an operation. Whether there was one.
    async fn remove_schedule(&self, name: &str) -> Result<bool, StoreError> {
        self.mutate(Mutation::RemoveSchedule { name: name.to_owned() }, None).await?.changed()
    }

    /// Moves a schedule on to its next tick, if it still stands at the one that was seen. Whether it did: of
    /// several servers, one.
    async fn advance_schedule(
        &self,
        name: &str,
        seen: Option<Timestamp>,
        next: Option<Timestamp>,
        last_run: Option<RunId>,
    ) -> Result<bool, StoreError>;

    async fn schedule(&self, name: &str) -> Result<Option<ScheduleRecord>, StoreError>;

    /// By name.
    async fn schedules(&self) -> Result<Vec<ScheduleRecord>, StoreError>;

    /// Notes what became of a tick; the newest [`STARTS_KEPT`] of a schedule stay. A tick that was noted before is
    /// tried once more ([`ScheduleStart::tries`] counts), unless it is noted as started already.
    async fn note_start(&self, schedule: &str, start: ScheduleStart) -> Result<(), StoreError>;

    /// What became of the ticks of a schedule, newest first.
    async fn schedule_starts(&self, schedule: &str, limit: usize) -> Result<Vec<ScheduleStart>, StoreError>;
}

/// Ticks of a schedule whose outcome is kept.
pub const STARTS_KEPT: usize = 100;

/// A schedule and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    pub schedule: Schedule,
    /// The next tick; none if it never comes again.
    #[serde(with = "time::rfc3339::option")]
    pub next_at: Option<Timestamp>,
    /// Of its newest start.
    pub last_run: Option<RunId>,
}

/// What became of a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStart {
    pub tick: Timestamp,
    /// Of the newest try.
    pub at: Timestamp,
    /// How often it was tried.
    pub tries: u32,
    /// The caller that started it, if the schedule did not.
    pub by: Option<Arc<str>>,
    pub outcome: StartOutcome,
}

/// What starting a tick came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartOutcome {
    Started(RunId),
    /// The run of an earlier tick was still under way.
    Skipped,
    /// No run was started, and why. The schedule tries again.
    Failed(Arc<str>),
}

impl StartOutcome {
    /// As archives store it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Started(_) => "started",
            Self::Skipped => "skipped",
            Self::Failed(_) => "failed",
        }
    }

    /// From what an archive has stored: the name, the run and the error. `None` if they do not fit.
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
