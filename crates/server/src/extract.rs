//! Extractors for bodies, queries and paths; each rejects invalid input with a problem document.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use switchyard_base::HumanDuration;
use switchyard_core::{OperationId, Timestamp};
use switchyard_runtime::ids;

use crate::ServerState;
use crate::limits::Limits;
use crate::problem::Problem;

/// A JSON body. The parser rejects more than 128 levels of nesting.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<ServerState> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, Problem> {
        require_json(request.headers())?;
        let bytes = read(request, &state.limits).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| not_as_expected(&error))
    }
}

/// A JSON body that may be empty; then the value is `T::default()`.
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<ServerState> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, Problem> {
        let declared = request.headers().contains_key(header::CONTENT_TYPE);
        if declared {
            require_json(request.headers())?;
        }
        let bytes = read(request, &state.limits).await?;
        match (bytes.is_empty(), declared) {
            (true, _) => Ok(Self(T::default())),
            (false, false) => Err(wrong_type()),
            (false, true) => {
                serde_json::from_slice(&bytes).map(Self).map_err(|error| not_as_expected(&error))
            }
        }
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    let (kind, subtype) = essence.split_once('/').unwrap_or_default();
    let json = kind.eq_ignore_ascii_case("application")
        && (subtype.eq_ignore_ascii_case("json") || subtype.to_ascii_lowercase().ends_with("+json"));
    if json { Ok(()) } else { Err(wrong_type()) }
}

fn wrong_type() -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", "the body must be JSON")
        .hint("send it with Content-Type: application/json")
}

async fn read(request: Request, limits: &Limits) -> Result<Bytes, Problem> {
    let (bytes_max, wait_max) = (limits.body_bytes_max, limits.body_wait_max);
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if declared.and_then(|value| value.parse::<u64>().ok()).is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(too_large(bytes_max));
    }
    match tokio::time::timeout(wait_max, to_bytes(request.into_body(), bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(too_large(bytes_max)),
        Ok(Err(_)) => Err(Problem::bad_request("body_unreadable", "the body did not arrive whole")),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            "the body took too long to arrive",
        )),
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn too_large(bytes_max: usize) -> Problem {
    let detail = format!("the body has more than the {bytes_max} bytes it may have");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

fn not_as_expected(error: &serde_json::Error) -> Problem {
    match error.classify() {
        serde_json::error::Category::Data => {
            Problem::unprocessable("invalid_body", format!("the body: {error}"))
        }
        _ => Problem::bad_request("invalid_json", format!("the body is not valid JSON: {error}")),
    }
}

/// The header with the id of a change, so that a repeated request takes effect once.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The value of the `Idempotency-Key` header, if the caller sends it.
pub(crate) struct IdempotencyKey(pub(crate) Option<OperationId>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let invalid = |why: &dyn std::fmt::Display| {
            Problem::bad_request("invalid_idempotency_key", format!("the header Idempotency-Key: {why}"))
        };
        let mut given = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = given.next() else { return Ok(Self(None)) };
        if given.next().is_some() {
            return Err(invalid(&"it is there more than once"));
        }
        let text = value.to_str().unwrap_or_default();
        OperationId::new(text).map(|id| Self(Some(id))).map_err(|error| invalid(&error))
    }
}

/// The id of the change that a request makes, set before the route calls the engine. If the request ends without an
/// outcome, the error response names this id.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeId(Arc<OnceLock<OperationId>>);

impl ChangeId {
    pub(crate) fn is(&self, id: OperationId) {
        // A request makes one change, so the id is set once.
        let _ = self.0.set(id);
    }

    pub(crate) fn get(&self) -> Option<&OperationId> {
        self.0.get()
    }
}

/// The id of a change: the caller's `Idempotency-Key`, or a random id. Every route that changes something passes it to
/// the engine.
pub(crate) struct Operation(pub(crate) OperationId);

impl<S: Send + Sync> FromRequestParts<S> for Operation {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let IdempotencyKey(given) = IdempotencyKey::from_request_parts(parts, state).await?;
        let id = given.unwrap_or_else(ids::operation_id);
        if let Some(change) = parts.extensions.get::<ChangeId>() {
            change.is(id.clone());
        }
        Ok(Self(id))
    }
}

/// The parsed query string.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Problem::bad_request("invalid_query", rejection.body_text())),
        }
    }
}

/// The parsed path parameters.
pub(crate) struct Segments<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(rejection) => Err(Problem::bad_request("invalid_id", rejection.body_text())),
        }
    }
}

/// A duration such as `30s` or `1h30m`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasting(pub(crate) Duration);

impl<'de> Deserialize<'de> for Lasting {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        let parsed: Result<HumanDuration, _> = text.parse();
        parsed
            .map(|length| Self(length.0))
            .map_err(|error| serde::de::Error::custom(format!("{error}: {}", error.hint)))
    }
}

impl schemars::JsonSchema for Lasting {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Lasting".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A number and a unit, such as `500ms`, `30s` or `1h30m`.",
            "minLength": 2,
            "pattern": switchyard_base::DURATION_PATTERN,
            "examples": ["30s"],
        })
    }
}

/// A timestamp in a body, in RFC 3339.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        let expected = "write it as RFC 3339, such as `2027-01-31T09:00:00Z`";
        text.parse().map(Self).map_err(|error| serde::de::Error::custom(format!("{error}: {expected}")))
    }
}

impl schemars::JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A moment as RFC 3339.",
            "examples": ["2027-01-31T09:00:00Z"],
        })
    }
}

/// Rejects text of more than `bytes_max` bytes, which would make a history unreadable.
pub(crate) fn short<'t>(field: &str, text: &'t str, bytes_max: usize) -> Result<&'t str, Problem> {
    if text.len() <= bytes_max {
        return Ok(text);
    }
    let detail = format!("`{field}` has {} bytes, more than the {bytes_max} it may have", text.len());
    Err(Problem::unprocessable("too_long", detail))
}
