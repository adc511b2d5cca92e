//! The documents of the HTTP API, which the server writes and clients read.
//!
//! Payloads are plain JSON, and timestamps are RFC 3339. Runs and workflows in lists are the records of the store
//! ([`RunRecord`], [`WorkflowRecord`]).
//!
//! This crate never does I/O, and contains no decisions of the engine.

mod approval;
mod bulk;
mod event;
mod key;
mod log;
mod plain;
mod problem;
mod queue;
mod run;
mod schedule;
mod task;
mod waiting;
mod worker;

pub use approval::Approval;
pub use bulk::{BulkPreview, BulkResultPage, BulkView};
pub use event::Event;
pub use key::{ApiKeyView, DrawnKey, KeyText};
pub use log::{LogPage, LoggedLines};
pub use plain::{payload_reference, plain};
pub use problem::{Problem, ProblemPlace};
pub use queue::{DeadLetterView, Delivery, QueueView, QueuesView, Redriven};
pub use run::{
    ChildView, Forked, MissingPayload, NodeView, NodesInOrder, PatchReport, PatchView, RunAt, RunCountView,
    RunPage, RunView, Wait,
};
pub use schedule::{Backfilled, ScheduleView, StartOutcomeName, StartView, TickRun};
pub use task::{Beat, HeldTask};
pub use waiting::{RunWaits, WaitReason, unserved};
pub use worker::{WorkerConnection, WorkerView, WorkersView};

pub use switchyard_store::{
    ApprovalStatus, BulkAction, BulkResult, DeadKind, DeadLetter, DeadLetterGroup, RunRecord, Tombstone,
    WorkflowRecord,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A registered workflow, its definition, and its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkflowView {
    #[serde(flatten)]
    pub record: WorkflowRecord,
    /// The definition in its canonical form.
    pub source: Value,
    /// The versions of the workflow, newest first.
    pub versions: Vec<WorkflowRecord>,
}

/// The server's version and the id of its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    /// The version of Switchyard.
    pub version: String,
    /// The id of the store: the same for the same data folder, wherever it is mounted.
    pub store: Option<String>,
}
