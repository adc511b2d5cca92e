//! The events of every run, in order.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use switchyard_core::run::Event;
use switchyard_core::{RunId, Timestamp};

use crate::StoreError;

/// Resolves when what was handed over is durable.
pub type Ack = BoxFuture<'static, Result<(), StoreError>>;

/// The events of every run. [`Journal::append`] also keeps the rows that follow from events: those of runs, their
/// operations, approvals, dead letters and payloads.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Takes events of any runs, in order. Calls are committed in the order in which they are made, many at once.
    /// An event that is there already (same run and seq) changes nothing if it says the same; if it says something
    /// else, the call is refused as [`StoreError::Diverged`]. A gap in a run's seq is refused as
    /// [`StoreError::Corrupt`]. Of a call that is refused nothing is kept, and other calls go on.
    ///
    /// An empty append is a barrier: it is acknowledged after everything that was handed over before it.
    ///
    /// Not an `async fn`: the place in the order is taken at the call, not at the first poll. After
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`] the events may be handed over again; an archive
    /// that is a file of this process may take nothing any more instead, because what it has in hand may be worth
    /// less than what is on the disk.
    fn append(&self, events: Vec<Event>) -> Ack;

    /// Events of a run with `seq > after`, in order, at most `limit`.
    async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Which archive this is, and how far it has come.
    async fn mark(&self) -> Result<ArchiveMark, StoreError>;
}

/// What tells an archive from others, and from an earlier state of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMark {
    /// Drawn by its first migration. A copy has the id of the original.
    pub id: Arc<str>,
    /// For people, without passwords.
    pub location: Arc<str>,
    /// The moment of a recent event. It grows with what is appended, at most [`MARK_EVERY`] late, and never falls: an
    /// archive whose position is behind one that was seen before was restored to an earlier time.
    pub position: Timestamp,
}

/// How often an archive that is appended to writes down its position at most. A position for every commit would cost
/// each of them a row.
pub const MARK_EVERY: Duration = Duration::from_millis(100);
