//! Queues and dead letters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::{Timestamp, time};
use switchyard_store::DeadLetter;

use crate::RunAt;

/// All queues with tasks, and the number of dead letters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuesView {
    /// The queues that are not empty, by type and priority.
    pub queues: Vec<QueueView>,
    /// The number of all dead letters, including those of signals.
    pub dead_letters: usize,
}

/// Tasks of one type and priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    pub queue: Arc<str>,
    pub priority: Arc<str>,
    /// Tasks that wait for a worker.
    pub waiting: usize,
    /// Tasks that a worker holds.
    pub claimed: usize,
    /// When the task that has waited longest was queued.
    #[serde(with = "time::rfc3339::option")]
    pub oldest_at: Option<Timestamp>,
    /// Tasks that became dead letters.
    pub dead_letters: usize,
    /// Live workers that take tasks from this queue.
    #[serde(default)]
    pub workers: usize,
}

/// A dead letter. Lists omit its deliveries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterView {
    #[serde(flatten)]
    pub letter: DeadLetter,
    /// The queue of its tasks.
    pub queue: Option<Arc<str>>,
    pub priority: Option<Arc<str>>,
    /// All deliveries, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Vec<Delivery>>,
}

/// One delivery of a task to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub worker: Arc<str>,
    pub attempt: u32,
    #[serde(with = "time::rfc3339")]
    pub at: Timestamp,
    /// The result of the delivery, in a word or a sentence; `None` if the worker has not settled it.
    pub ended: Option<Arc<str>>,
    #[serde(with = "time::rfc3339::option")]
    pub ended_at: Option<Timestamp>,
}

/// A dead letter that was redriven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Redriven {
    pub id: Arc<str>,
    /// The run that continues, if the dead letter was a task.
    pub run: Option<RunAt>,
}
