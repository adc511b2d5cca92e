//! The failure of a command: an exit code, a message, hints.

mod report;

use std::io;
use std::process::ExitCode;

use switchyard_api::{Problem, ProblemPlace};
use switchyard_base::{Diagnostic, Diagnostics};
use switchyard_core::OperationId;
use switchyard_core::run::Refusal;
use switchyard_runtime::EngineError;
use switchyard_store::{Mismatch, StoreError};

use crate::output;

const UNKNOWN_RUN: &str = "`switchyard runs list` shows the runs";

/// The exit codes, documented in `switchyard --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success = 0,
    /// A run did not succeed, or its state does not allow the requested operation.
    Refused = 1,
    Usage = 2,
    Store = 3,
    Interrupted = 130,
    Terminated = 143,
}

#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    report: Report,
}

#[derive(Debug)]
enum Report {
    /// The command has printed everything already.
    None,
    Sentence {
        message: String,
        hints: Vec<String>,
    },
    /// The problems of a text, and the text itself if it was read from `diagnostics.file`.
    Problems {
        diagnostics: Box<Diagnostics>,
        what: String,
        text: Option<String>,
    },
}

impl Failure {
    fn new(exit: Exit, message: impl ToString) -> Self {
        Self { exit, report: Report::Sentence { message: message.to_string(), hints: Vec::new() } }
    }

    pub(crate) fn refused(message: impl ToString) -> Self {
        Self::new(Exit::Refused, message)
    }

    pub(crate) fn usage(message: impl ToString) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn store(message: impl ToString) -> Self {
        Self::new(Exit::Store, message)
    }

    /// The failure of a change whose outcome is unknown.
    fn outcome_unknown(operation: &OperationId, why: impl std::fmt::Display) -> Self {
        Self::store(format!("it is not known whether it was done: {why}")).hint(format!(
            "repeat the command with --operation-id {operation}: it is done once, however often you do"
        ))
    }

    fn sentence(&self) -> &str {
        match &self.report {
            Report::Sentence { message, .. } => message,
            Report::None | Report::Problems { .. } => "",
        }
    }

    /// Whether the store or the server failed.
    pub(crate) fn is_store(&self) -> bool {
        self.exit == Exit::Store
    }

    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, report: Report::None }
    }

    /// The failure for an invalid text. `what` names it in messages.
    pub(crate) fn invalid(what: impl ToString, diagnostics: Diagnostics, text: Option<String>) -> Self {
        let report = Report::Problems { diagnostics: Box::new(diagnostics), what: what.to_string(), text };
        Self { exit: Exit::Usage, report }
    }

    /// Names the invalid text; changes no other kind of failure.
    pub(crate) fn about(mut self, name: impl ToString) -> Self {
        if let Report::Problems { what, .. } = &mut self.report {
            *what = name.to_string();
        }
        self
    }

    /// The message, if a state does not allow the requested operation.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match &self.report {
            Report::Sentence { message, .. } if self.exit == Exit::Refused => Some(message),
            _ => None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl ToString) -> Self {
        if let Report::Sentence { hints, .. } = &mut self.report {
            hints.push(hint.to_string());
        }
        self
    }

    /// The problems as data, each with its file.
    pub(crate) fn problems(&self) -> Vec<(Option<String>, Diagnostic)> {
        match &self.report {
            Report::None => Vec::new(),
            Report::Sentence { message, hints } => {
                let hint = hints.first().cloned();
                vec![(
                    None,
                    Diagnostic { message: message.clone(), hint, path: String::new(), position: None },
                )]
            }
            Report::Problems { diagnostics, .. } => {
                diagnostics.iter().map(|found| (diagnostics.file.clone(), found.clone())).collect()
            }
        }
    }

    /// Prints the failure, and returns the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        match &self.report {
            Report::None => {}
            Report::Sentence { message, hints } => {
                output::tell(&format!("error: {message}"));
                hints.iter().for_each(|hint| output::hint(hint));
            }
            Report::Problems { diagnostics, what, text } => {
                report::tell(diagnostics, text.as_deref(), output::colors());
                let count = match diagnostics.len() {
                    1 => "1 problem".to_owned(),
                    many => format!("{many} problems"),
                };
                output::tell(&format!("error: {what} is not valid: {count}"));
            }
        }
        ExitCode::from(self.exit as u8)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::Invalid(diagnostics) => Self::invalid("the request", diagnostics, None),
            EngineError::UnknownRun(_) => Self::usage(error).hint(UNKNOWN_RUN),
            EngineError::ConcurrencyKey(_) | EngineError::BadRequest(_) => Self::usage(error),
            EngineError::Damaged(_) => Self::store(error),
            EngineError::OutcomeUnknown { operation, why } => Self::outcome_unknown(&operation, why),
        }
    }
}

impl From<switchyard_client::Error> for Failure {
    fn from(error: switchyard_client::Error) -> Self {
        use switchyard_client::Error as E;
        match error {
            E::Refused(problem) => (*problem).into(),
            E::OutcomeUnknown { operation, source } => {
                Self::outcome_unknown(&operation, Self::from(*source).sentence())
            }
            E::Address(_) | E::Key => Self::usage(error),
            E::Unreachable { source, .. } if source.is_timeout() => {
                Self::store("the server does not answer in time")
            }
            E::Unreachable { .. } | E::Strange { .. } | E::Setup(_) => Self::store(error),
            other => Self::store(other),
        }
    }
}

impl From<Problem> for Failure {
    /// Gives the same exit codes and messages as an error in this process.
    fn from(problem: Problem) -> Self {
        let place = |place: ProblemPlace| Diagnostic {
            message: place.message,
            hint: place.hint,
            path: place.path,
            position: None,
        };
        if let Some(found) = Diagnostics::from_list(problem.problems.into_iter().map(place).collect()) {
            return Self::invalid("the request", found, None);
        }
        let exit = match problem.status {
            409 => Exit::Refused,
            400..500 => Exit::Usage,
            _ => Exit::Store,
        };
        let failure = Self::new(exit, problem.detail);
        match (&*problem.code, problem.hint) {
            ("unknown_run", _) => failure.hint(UNKNOWN_RUN),
            ("no_key" | "wrong_key", _) => failure
                .hint("give the key in SWITCHYARD_API_KEY, or as `api_key` in the settings file")
                .hint("--server none works in the data folder, even if a server answers"),
            // The server's hints are about requests, not about commands.
            ("unknown_workflow", _) | (_, None) => failure,
            (_, Some(hint)) => failure.hint(hint),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::UnknownNode(_) | Refusal::UnknownPatch(_) => Self::usage(refusal),
            other => Self::refused(other),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InUse { .. } => Self::store(error)
                .hint("stop that process first (Ctrl-C leaves its runs resumable)")
                .hint("meanwhile, list, show, events and watch work"),
            StoreError::Mismatched(mismatch) => mismatched(&mismatch),
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::UnknownRun(_) | StoreError::Unknown { .. } => Self::usage(error),
            StoreError::Unavailable(_)
            | StoreError::OutcomeUnknown(_)
            | StoreError::Diverged { .. }
            | StoreError::Corrupt(_) => Self::store(error),
        }
    }
}

/// The failure for a Redis that does not belong to the archive; the hints depend on the kind of mismatch.
fn mismatched(mismatch: &Mismatch) -> Failure {
    const REBUILD: &str = "`switchyard redis rebuild`";
    let failure = Failure::store(mismatch);
    match mismatch {
        Mismatch::OtherArchive { .. } => failure
            .hint("share the Redis under another prefix: SWITCHYARD_REDIS_PREFIX, or redis.prefix in the settings file")
            .hint("or use another Redis: --redis URL or REDIS_URL")
            .hint(format!("or, if the other archive is gone for good, fill this Redis from this archive: {REBUILD}")),
        Mismatch::WentBack { .. } => failure
            .hint("restore a newer backup, if there is one")
            .hint(format!("or go on from this one: {REBUILD} says what that means")),
        Mismatch::Rebuilding { .. } => failure.hint(format!("wait for it, or begin anew: {REBUILD}")),
    }
}

impl From<switchyard_checkpoints::Error> for Failure {
    fn from(error: switchyard_checkpoints::Error) -> Self {
        use switchyard_checkpoints::Error;
        match error {
            Error::Invalid(_) => Self::usage(error),
            Error::Unavailable { .. } => {
                Self::store(error).hint("say where Redis is with --redis URL or REDIS_URL")
            }
            Error::Format { .. } => Self::store(error).hint("a newer release wrote it: use that one"),
            Error::Refused { .. } | Error::Corrupt { .. } => Self::store(error),
        }
    }
}

/// Errors of writing to stdout: files are read elsewhere, with their names in the sentence.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // `switchyard runs events … | head` closes the pipe once it has enough lines.
            io::ErrorKind::BrokenPipe => Self::silent(Exit::Success),
            _ => Self::store(format!("cannot write the output: {error}")),
        }
    }
}

/// Errors of serializing to JSON: no document of this program causes one.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::store(format!("cannot be written as JSON: {error}"))
    }
}
