//! Queues and dead letters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::{Timestamp, time};
use switchyard_store::DeadLetter;

use crate::RunAt;

/// Everything that waits, and how many dead letters there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuesView {
    /// By type and priority; those of which there is something.
    pub queues: Vec<QueueView>,
    /// Of every type, those of signals included.
    pub dead_letters: usize,
}

/// Tasks of one type and priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    pub queue: Arc<str>,
    pub priority: Arc<str>,
    /// For a worker.
    pub waiting: usize,
    /// Held by one.
    pub claimed: usize,
    /// When the one that has waited longest was queued.
    #[serde(with = "time::rfc3339::option")]
    pub oldest_at: Option<Timestamp>,
    /// Given up.
    pub dead_letters: usize,
    /// Workers that are alive and take tasks of it.
    #[serde(default)]
    pub workers: usize,
}

/// A dead letter; alone, with its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterView {
    #[serde(flatten)]
    pub letter: DeadLetter,
    /// Where its tasks lay.
    pub queue: Option<Arc<str>>,
    pub priority: Option<Arc<str>>,
    /// Every delivery, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Vec<Delivery>>,
}

/// A time that a worker was handed a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub worker: Arc<str>,
    pub attempt: u32,
    #[serde(with = "time::rfc3339")]
    pub at: Timestamp,
    /// What came of it, in a word or a sentence; nothing yet, if it is not there.
    pub ended: Option<Arc<str>>,
    #[serde(with = "time::rfc3339::option")]
    pub ended_at: Option<Timestamp>,
}

/// A dead letter that was sent once more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Redriven {
    pub id: Arc<str>,
    /// The run that goes on, if it was a task.
    pub run: Option<RunAt>,
}
