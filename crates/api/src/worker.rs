//! Workers, in the form that clients see.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::ir::queue_name::{FUNCTION, function_of};
use switchyard_core::{Timestamp, time};
use switchyard_store::{Worker, WorkerKind};

/// The workers, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersView {
    pub workers: Vec<WorkerView>,
}

/// A worker that was in contact within the last day, and the functions that it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    pub name: Arc<str>,
    pub kind: WorkerConnection,
    /// Whether the worker was in contact within its lease.
    pub alive: bool,
    /// Functions that the worker serves; a `*` at the end matches every function with that prefix.
    pub functions: Vec<String>,
    /// Types of task that the worker takes; `function` stands for every function without a `queue`.
    pub types: Vec<String>,
    /// How many tasks the worker executes at once, as reported by the worker.
    pub slots: usize,
    /// How many tasks the worker holds, as reported by the worker.
    pub busy: usize,
    /// The version of the worker's program; empty if the worker does not report one.
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
    /// The worker is a Switchyard process, with slots of its own.
    Process,
    /// The worker claims tasks over HTTP.
    Http,
    /// The worker reads Redis streams directly.
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
                // The type `function` already covers every function.
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
