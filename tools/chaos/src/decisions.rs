//! The requests of users, their answers, and how to find their effects in the archive.

use std::fmt;

use switchyard_core::RunId;
use switchyard_core::run::{Decision as Verdict, EventKind};

/// The kind of a request.
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

/// The outcome of one request, as far as its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    /// The server says that the request was not carried out.
    Refused,
    /// The request may have been carried out.
    Unknown,
}

/// A request of a user, sent once or several times under the same operation id.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) run: RunId,
    pub(crate) kind: Kind,
    /// A text in the event that the request causes, and in no other event of its kind.
    pub(crate) mark: String,
    pub(crate) answers: Vec<Answer>,
}

impl Decision {
    /// The outcome after all tries. A try that is unknown may still take effect after a later one was refused.
    pub(crate) fn known(&self) -> Answer {
        known(&self.answers)
    }

    /// Whether the request caused this event.
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
            // Found by its operation: a cancel that hurries a run that is already closing leaves the first reason in
            // the event.
            (Kind::Cancel, EventKind::RunClosing { operation: Some(by), .. }) => {
                by.id.as_str() == operation_of(mark)
            }
            (Kind::Patch, EventKind::RunPatched(patched)) => &*patched.author == mark,
            _ => false,
        }
    }
}

/// The operation id of the request with this mark, if its user sends one.
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
