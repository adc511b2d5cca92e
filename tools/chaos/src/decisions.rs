//! What users asked for, what they were answered, and how that is found again in the archive.

use std::fmt;

use switchyard_core::RunId;
use switchyard_core::run::{Decision as Verdict, EventKind};

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Signal,
    Approve,
    Reject,
    Cancel,
    Pause,
    Resume,
    Patch,
    Retry,
}

/// What one request came to, as far as its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    /// It was not done, says the server.
    Refused,
    /// It may have been done.
    Unknown,
}

/// Something that a user asked for, once or more often under the same operation id.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) run: RunId,
    pub(crate) kind: Kind,
    /// Stands in the event that it makes, and in no other of its kind.
    pub(crate) mark: String,
    pub(crate) answers: Vec<Answer>,
}

impl Decision {
    /// What is known after all tries. A try that is unknown may still take effect after a later one was refused.
    pub(crate) fn known(&self) -> Answer {
        known(&self.answers)
    }

    /// Whether this event is what it did.
    pub(crate) fn made(&self, event: &EventKind) -> bool {
        let mark = &*self.mark;
        match (self.kind, event) {
            (Kind::Signal, EventKind::SignalReceived { payload, .. }) => {
                serde_json::to_string(payload).is_ok_and(|text| text.contains(mark))
            }
            (Kind::Approve, EventKind::ApprovalDecided { by, decision: Verdict::Approved, .. })
            | (Kind::Reject, EventKind::ApprovalDecided { by, decision: Verdict::Rejected, .. })
            | (Kind::Pause, EventKind::RunPaused { by, .. })
            | (Kind::Resume, EventKind::RunResumed { by, .. })
            | (Kind::Retry, EventKind::RunRetried { by, .. }) => &**by == mark,
            // By its operation: a cancel that hurries a run which is closing already leaves the first reason in the event.
            (Kind::Cancel, EventKind::RunClosing { operation: Some(by), .. }) => {
                by.id.as_str() == operation_of(mark)
            }
            (Kind::Patch, EventKind::RunPatched(patched)) => &*patched.author == mark,
            _ => false,
        }
    }
}

/// The operation id of what carries this mark, if its user names it.
pub(crate) fn operation_of(mark: &str) -> String {
    format!("op-{mark}")
}

pub(crate) fn known(answers: &[Answer]) -> Answer {
    let known = [Answer::Done, Answer::Unknown].into_iter().find(|answer| answers.contains(answer));
    known.unwrap_or(Answer::Refused)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signal => "signal",
            Self::Approve => "approval",
            Self::Reject => "rejection",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Patch => "patch",
            Self::Retry => "retry",
        })
    }
}
