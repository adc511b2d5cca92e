//! Log lines that a worker sends about a task it holds, bounded for each attempt.
//!
//! Lines are kept by reference like every large value, so the core counts them and does not read them.

use serde::{Deserialize, Serialize};

use super::*;

/// Lines of one attempt that are kept.
pub const LOG_LINES_MAX: u32 = 2_000;
/// Bytes of the messages of one attempt that are kept.
pub const LOG_BYTES_MAX: u32 = 256 * 1024;

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    #[serde(with = "crate::time::rfc3339")]
    pub at: Timestamp,
    /// None for output of a program, which has no levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// Some lines of an attempt, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogBatch {
    /// A list of [`LogLine`].
    pub lines: Payload,
    pub count: u32,
    /// The size of the messages.
    pub bytes: u32,
}

/// How much the current attempt of a node has logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    pub lines: u32,
    pub bytes: u32,
    /// Set once lines were dropped; all later lines are dropped too.
    pub truncated: bool,
}

impl Logged {
    fn fits(self, batch: &LogBatch) -> bool {
        let lines = self.lines.saturating_add(batch.count);
        lines <= LOG_LINES_MAX && self.bytes.saturating_add(batch.bytes) <= LOG_BYTES_MAX
    }
}

impl Run {
    /// The event for a batch of lines: the lines, a mark that there were too many, or `None` after that mark.
    pub(super) fn log_event(&self, ix: NodeIx, batch: LogBatch) -> Option<EventKind> {
        let logged = self.node(ix).said.as_ref().map_or(Logged::default(), |said| said.logged);
        let (node, attempt) = (self.id_of(ix), self.node(ix).attempt);
        match (logged.truncated, logged.fits(&batch)) {
            (true, _) => None,
            (false, true) => {
                let LogBatch { lines, count, bytes } = batch;
                Some(EventKind::NodeLogged { node, attempt, lines, count, bytes, truncated: false })
            }
            (false, false) => {
                let lines = Payload::from_value(&serde_json::Value::Array(Vec::new()));
                Some(EventKind::NodeLogged { node, attempt, lines, count: 0, bytes: 0, truncated: true })
            }
        }
    }

    pub(super) fn on_node_logged(&mut self, ix: NodeIx, count: u32, bytes: u32, truncated: bool) -> bool {
        let node = self.node_mut(ix);
        let logged = &mut node.said.get_or_insert_default().logged;
        logged.lines += count;
        logged.bytes += bytes;
        logged.truncated |= truncated;
        node.state == NodeState::Running
    }
}
