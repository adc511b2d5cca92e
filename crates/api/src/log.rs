//! Log lines of steps.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::RunId;
use switchyard_core::run::LogLine;

/// Lines that a step logged together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedLines {
    /// The number of the event that contains the lines.
    pub seq: u64,
    pub run_id: RunId,
    pub node: Arc<str>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    pub lines: Vec<LogLine>,
    /// Whether the attempt exceeded the limit on log lines, so that later lines were dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The reason why the lines cannot be loaded, if they cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// A page of the log lines of a run's steps, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogPage {
    pub logs: Vec<LoggedLines>,
    /// `after` of the next page, if there may be more now.
    pub next: Option<u64>,
    /// The number of the newest event that was read for this page.
    pub last: u64,
    /// Whether the run has ended and this is its last page.
    pub ended: bool,
}
