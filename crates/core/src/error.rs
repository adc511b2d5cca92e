//! Errors of nodes and runs: a code that a program can match, and a message that a person can read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The failure of one attempt at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeError {
    /// A stable word for programs: `timeout`, `http_status`, `panic`, `rejected`, … or a handler's own.
    pub code: Arc<str>,
    /// A sentence for people.
    pub message: Arc<str>,
    /// Whether trying the same thing again can help.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub retryable: bool,
    /// The shortest delay before the next attempt. Not stored: the event that follows holds the time of that attempt.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_true(value: &bool) -> bool {
    *value
}

impl NodeError {
    /// A failure that may pass: the retry policy applies.
    pub fn retryable(code: &str, message: impl Into<Arc<str>>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: true, retry_after: None }
    }

    /// A failure that a retry would repeat: no retry.
    pub fn permanent(code: &str, message: impl Into<Arc<str>>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, retry_after: None }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// Why a run ended without success: which node, which attempt, and the cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    pub code: Arc<str>,
    pub message: Arc<str>,
    /// Nodes whose compensations failed too, so that their effects remain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compensated: Vec<Arc<str>>,
}

impl RunError {
    pub fn of_run(code: &str, message: impl Into<Arc<str>>) -> Self {
        Self {
            node: None,
            attempt: None,
            code: code.into(),
            message: message.into(),
            not_compensated: vec![],
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "node `{node}`")?;
            if let Some(attempt) = self.attempt {
                write!(f, ", attempt {attempt}")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{} ({})", self.message, self.code)?;
        if !self.not_compensated.is_empty() {
            write!(f, "; not compensated: {}", self.not_compensated.join(", "))?;
        }
        Ok(())
    }
}
