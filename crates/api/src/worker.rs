//! Workers as people and programs see them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::ir::queue_name::{FUNCTION, function_of};
use switchyard_core::{Timestamp, time};
use switchyard_store::{Worker, WorkerKind};

/// Workers in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersView {
    pub workers: Vec<WorkerView>,
}

/// A worker that was heard of within a day, and what it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    pub name: Arc<str>,
    pub kind: WorkerConnection,
    /// Whether it has been heard of within its lease.
    pub alive: bool,
    /// Functions that it serves; with a `*` at the end, all that begin so.
    pub functions: Vec<String>,
    /// Types of task that it takes; `function` stands for every function without a `queue`.
    pub types: Vec<String>,
    /// Tasks that it executes at once, as far as it says so.
    pub slots: usize,
    /// Tasks that it holds, as far as it says so.
    pub busy: usize,
    /// Of its program; empty if it does not say so.
    pub version: Arc<str>,
    #[serde(with = "time::rfc3339")]
    pub since: Timestamp,
    #[serde(with = "time::rfc3339")]
    pub last_seen: Timestamp,
}

/// How a worker reaches its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerConnection {
    /// Slots of a Switchyard process.
    Process,
    /// It claims over HTTP.
    Http,
    /// It reads streams of Redis by itself.
    Plain,
}

impl WorkerConnection {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Http => "http",
            Self::Plain => "plain",
        }
    }
}

impl From<Worker> for WorkerView {
    fn from(worker: Worker) -> Self {
        let every_function = worker.queues.iter().any(|queue| &**queue == FUNCTION);
        let (mut functions, mut types) = (Vec::new(), Vec::new());
        for queue in worker.queues.iter() {
            match function_of(queue) {
                // The type `function` says it.
                Some("*") if every_function => {}
                Some(function) => functions.push(function.to_owned()),
                None => types.push(queue.to_string()),
            }
        }
        Self {
            name: worker.name,
            kind: match worker.kind {
                WorkerKind::Process => WorkerConnection::Process,
                WorkerKind::Http => WorkerConnection::Http,
                WorkerKind::Plain => WorkerConnection::Plain,
            },
            alive: worker.alive,
            functions,
            types,
            slots: worker.slots,
            busy: worker.busy,
            version: worker.version,
            since: worker.since,
            last_seen: worker.last_seen,
        }
    }
}
