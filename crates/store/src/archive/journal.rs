//! The events of every run, in order.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use switchyard_core::run::Event;
use switchyard_core::{RunId, Timestamp};

use crate::StoreError;

/// Resolves when the appended events are durable.
pub type Ack = BoxFuture<'static, Result<(), StoreError>>;

/// The events of every run. [`Journal::append`] also maintains the rows derived from events: runs, their operations,
/// approvals, dead letters and payloads.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Appends events of any runs, in order. Calls are committed in the order in which they are made, many at once. A
    /// repeated event (same run and seq) changes nothing if its content is the same; otherwise the call is refused as
    /// [`StoreError::Diverged`]. A gap in a run's seq is refused as [`StoreError::Corrupt`]. A refused call stores
    /// nothing, and does not affect other calls.
    ///
    /// An empty append is a barrier: it is acknowledged after every earlier append.
    ///
    /// Not an `async fn`: the call itself takes the place in the order, not the first poll. After
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`] the caller may append the events again. An
    /// archive in a file of this process may refuse every later append instead, because the state in memory may no
    /// longer match the disk.
    fn append(&self, events: Vec<Event>) -> Ack;

    /// Events of a run with `seq > after`, in order, at most `limit`.
    async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// The identity of this archive and its current position.
    async fn mark(&self) -> Result<ArchiveMark, StoreError>;
}

/// Identifies an archive, and distinguishes it from an earlier state of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMark {
    /// A random id that the archive's first migration draws. A copy has the id of the original.
    pub id: Arc<str>,
    /// The archive's address for people, without passwords.
    pub location: Arc<str>,
    /// The time of a recent event. It advances as events are appended, at most [`MARK_EVERY`] late, and never moves
    /// back: an archive whose position is behind an earlier one was restored to an earlier time.
    pub position: Timestamp,
}

/// The shortest time between two writes of an archive's position. Writing it at every commit would cost each commit a
/// row.
pub const MARK_EVERY: Duration = Duration::from_millis(100);
