//! Schedules and their next ticks.

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
}

/// A schedule and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    pub schedule: Schedule,
    /// The next tick; none if it never comes again.
    #[serde(with = "time::rfc3339::option")]
    pub next_at: Option<Timestamp>,
    /// Of its newest tick.
    pub last_run: Option<RunId>,
}
