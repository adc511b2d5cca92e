//! Error responses: RFC 9457 problem documents with a stable code. Details for the operator go to the log.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use switchyard_base::{Diagnostic, Diagnostics};
use switchyard_core::OperationId;
use switchyard_core::ids::InvalidId;
use switchyard_core::run::Refusal;
use switchyard_runtime::EngineError;
use switchyard_runtime::catalog::CatalogError;
use switchyard_runtime::payloads::PayloadError;
use switchyard_store::StoreError;

/// Why a request was not carried out.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    hint: Option<String>,
    problems: Vec<Diagnostic>,
    operation: Option<Box<OperationId>>,
    /// The value of the `WWW-Authenticate` header.
    challenge: Option<&'static str>,
}

/// Why a request was not carried out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Document<'p> {
    /// `urn:switchyard:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The HTTP status in words.
    title: &'p str,
    /// The HTTP status.
    status: u16,
    /// A sentence for people.
    detail: &'p str,
    /// A stable word for programs.
    code: &'p str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'p str>,
    /// What is wrong with a definition, an input or a patch: everything at once.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Option<Vec<ProblemPlace>>")]
    problems: &'p [Diagnostic],
    /// The id of a command whose outcome is unknown: send it again as `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'p str>,
}

/// One thing that is wrong, and where.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the schema of `switchyard_base::Diagnostic`, which is what is written")]
struct ProblemPlace {
    message: String,
    hint: Option<String>,
    /// Where in the document, such as `nodes.fetch.retry.max`.
    path: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl ToString) -> Self {
        let detail = detail.to_string();
        Self { status, code, detail, hint: None, problems: Vec::new(), operation: None, challenge: None }
    }

    pub(crate) fn document(&self) -> Document<'_> {
        Document {
            kind: format!("urn:switchyard:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            hint: self.hint.as_deref(),
            problems: &self.problems,
            operation: self.operation.as_deref().map(OperationId::as_str),
        }
    }

    pub(crate) fn bad_request(code: &'static str, detail: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(crate) fn unprocessable(code: &'static str, detail: impl ToString) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    pub(crate) fn conflict(code: &'static str, detail: impl ToString) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    pub(crate) fn not_found(code: &'static str, detail: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    /// An error of the server. The client gets a generic sentence, the log gets the cause.
    pub(crate) fn internal(code: &'static str, cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(code, %cause, "a request failed on our side");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            code,
            "something is wrong on the server; its log says what",
        )
    }

    fn unavailable(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "the store did not answer");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store_unavailable",
            "the store cannot be reached or written",
        )
        .hint("this request changed nothing; try again")
    }

    /// The change may have been made. If the caller repeats the request with the id, the server makes the change unless
    /// it was made already, and returns its outcome.
    pub(crate) fn outcome_unknown(operation: &OperationId, cause: &dyn std::fmt::Display) -> Self {
        Self::unanswered(cause).of_change(Some(operation))
    }

    /// Adds the id of the change to the problem, and a hint on how to repeat it. Does nothing if `operation` is `None`.
    pub(crate) fn of_change(mut self, operation: Option<&OperationId>) -> Self {
        if let Some(operation) = operation {
            self.operation = Some(Box::new(operation.clone()));
            self.hint = Some(format!(
                "repeat the same request with the header `Idempotency-Key: {operation}`: it takes effect once"
            ));
        }
        self
    }

    /// The store did not confirm a change, and the problem names no id to repeat it with.
    fn unanswered(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "the store did not answer whether it made a change");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "outcome_unknown",
            "the store was asked and did not answer in time: the change may have been made",
        )
    }

    /// Redis and the archive hold data of different installations. Their addresses go to the log only.
    fn mismatched(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "Redis and the archive do not belong together");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "wrong_archive",
            "what is in flight and the history do not belong together",
        )
        .hint("nothing was changed; the log and `switchyard doctor` say what to do")
    }

    /// The server made the change, but cannot read the result.
    pub(crate) fn done_and_unread(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "the store did not answer");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "done_and_unread",
            "it was done; what it came to cannot be read at the moment",
        )
        .hint("read it later; repeated with the same `Idempotency-Key`, it is not done again")
    }

    /// Converts an error from a read that follows a change: the failed read does not undo the change.
    pub(crate) fn after_the_change(self) -> Self {
        match self.code {
            "store_unavailable" => Self::done_and_unread(&self.detail),
            _ => self,
        }
    }

    pub(crate) fn challenge(self, challenge: &'static str) -> Self {
        Self { challenge: Some(challenge), ..self }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // The document has only strings and numbers, so serialising it cannot fail.
        let body = serde_json::to_vec(&self.document()).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if self.status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::OutcomeUnknown { operation, why } => Self::outcome_unknown(&operation, &why),
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::UnknownRun(_) => Self::not_found("unknown_run", error),
            EngineError::Invalid(diagnostics) => diagnostics.into(),
            EngineError::ConcurrencyKey(ref why) if why.exceeded.is_some() => {
                Self::unprocessable("expression_budget", error)
            }
            EngineError::ConcurrencyKey(_) => Self::unprocessable("invalid_concurrency_key", error),
            EngineError::BadRequest(_) => Self::bad_request("bad_request", error),
            EngineError::Damaged(_) => Self::internal("damaged", &error),
        }
    }
}

impl From<Diagnostics> for Problem {
    fn from(diagnostics: Diagnostics) -> Self {
        let first = diagnostics.first();
        let place = if first.path.is_empty() { String::new() } else { format!("{}: ", first.path) };
        let more = match diagnostics.len() {
            1 => String::new(),
            many => format!(" (and {} more)", many - 1),
        };
        let problem = Self::unprocessable("invalid", format!("{place}{}{more}", first.message));
        Self { problems: diagnostics.iter().cloned().collect(), hint: first.hint.clone(), ..problem }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::UnknownNode(_) => return Self::unprocessable("unknown_node", refusal),
            Refusal::UnknownPatch(_) => return Self::not_found("unknown_patch", refusal),
            Refusal::UnknownDefinition(_) => return Self::internal("unknown_definition", &refusal),
            Refusal::WrongStatus { .. } => "wrong_status",
            Refusal::NotPending => "not_pending",
            Refusal::TooManySignals(_) => "too_many_signals",
            Refusal::TooManyChunks(_) => "too_many_chunks",
            Refusal::StaleVersion { .. } => "stale_version",
            Refusal::NodeStarted(_) => "node_started",
            Refusal::NothingToRetry => "nothing_to_retry",
            Refusal::OperationReused(_) | Refusal::KeyReused { .. } => "idempotency_key_reused",
            Refusal::RunExists(_) => "run_exists",
        };
        Self::conflict(code, refusal)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::InUse { .. } => Self::unavailable(&error),
            StoreError::OutcomeUnknown(_) => Self::unanswered(&error),
            StoreError::Mismatched(mismatch) => Self::mismatched(&mismatch),
            StoreError::UnknownRun(_) => Self::not_found("unknown_run", error),
            StoreError::Unknown { kind: "workflow", .. } => Self::not_found("unknown_workflow", error)
                .hint("register it with POST /v1/workflows, or send its definition"),
            StoreError::Unknown { kind: "approval", .. } => Self::not_found("unknown_approval", error),
            StoreError::Unknown { kind: "api key", .. } => Self::not_found("unknown_key", error),
            StoreError::Unknown { kind: "dead letter", .. } => Self::not_found("unknown_dead_letter", error),
            StoreError::Unknown { kind: "schedule", .. } => Self::not_found("unknown_schedule", error),
            StoreError::Unknown { kind: "bulk job", .. } => Self::not_found("unknown_bulk_job", error),
            StoreError::Unknown { .. } => Self::internal("missing", &error),
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::Diverged { .. } | StoreError::Corrupt(_) => Self::internal("damaged", &error),
        }
    }
}

impl From<PayloadError> for Problem {
    fn from(error: PayloadError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<CatalogError> for Problem {
    fn from(error: CatalogError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<InvalidId> for Problem {
    fn from(error: InvalidId) -> Self {
        Self::bad_request("invalid_id", error)
    }
}

/// A value that cannot be serialised is a bug of the server.
impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self::internal("not_json", &error)
    }
}
