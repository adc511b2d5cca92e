//! Logs of steps.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::RunId;
use switchyard_core::run::LogLine;

/// Lines that a step logged together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedLines {
    /// The number of the event that keeps them.
    pub seq: u64,
    pub run_id: RunId,
    pub node: Arc<str>,
    /// From 1.
    pub attempt: u32,
    pub lines: Vec<LogLine>,
    /// The attempt logged more than is kept: what follows was dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Why the lines cannot be brought back, if they cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// Some of what the steps of a run have logged, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogPage {
    pub logs: Vec<LoggedLines>,
    /// `after` of the next page, if there may be more now.
    pub next: Option<u64>,
    /// The newest event that was looked at.
    pub last: u64,
    /// Whether the run has ended and this is its last page.
    pub ended: bool,
}
