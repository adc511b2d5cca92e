//! Changes that belong to no run, and the operation ids that make repeating them safe.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchyard_core::run::Refusal;
use switchyard_core::{Hash, OperationId, Timestamp};

use crate::{
    ApiKeyRecord, BulkJob, DeleteRequest, Deletion, Purge, ScheduleRecord, StoreError, WorkflowRecord,
};

/// Executes changes that belong to no run, each once for its operation id.
#[async_trait]
pub trait Operations: Send + Sync + 'static {
    /// Executes a change. With an operation, its id and answer are stored in the same transaction for
    /// [`OPERATIONS_KEPT`]: repeating the operation changes nothing and returns the same answer; another request
    /// under its id is refused as [`Refusal::OperationReused`].
    async fn mutate(
        &self,
        mutation: Mutation,
        operation: Option<&OperationRequest>,
    ) -> Result<MutationOutcome, StoreError>;

    /// The record of an operation, as long as it is kept.
    async fn operation(&self, id: &OperationId) -> Result<Option<OperationRecord>, StoreError>;

    /// One pass of the duty that removes old operations: at most `limit` from before this moment. Returns how many.
    async fn forget_operations(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// How long an archive keeps an operation at least.
pub const OPERATIONS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// A change to workflows, schedules, API keys, dead letters, bulk jobs, or the deletion of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Mutation {
    /// Gives a definition a name. Creates a new version unless the newest version has the same definition already.
    RegisterWorkflow {
        name: String,
        definition: Hash,
        at: Timestamp,
    },
    /// Stores a schedule under its name, replacing the schedule that had the name.
    PutSchedule(Box<ScheduleRecord>),
    RemoveSchedule {
        name: String,
    },
    /// Stores an API key. An existing key with the same id is not changed.
    PutApiKey(Box<ApiKeyRecord>),
    RevokeApiKey {
        id: String,
        at: Timestamp,
    },
    PurgeDeadLetters(Purge),
    /// Deletes an ended run and its descendants atomically, and leaves a tombstone.
    DeleteRun(Box<DeleteRequest>),
    /// Adds a bulk job.
    StartBulk(Box<BulkJob>),
    /// Ends a bulk job that has work left.
    StopBulk {
        id: String,
        at: Timestamp,
    },
    /// Changes nothing, and stores a note about an operation that is executed elsewhere.
    Note(Value),
}

/// The result of a mutation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MutationOutcome {
    Workflow(WorkflowRecord),
    Schedule(Box<ScheduleRecord>),
    /// The id of the key.
    ApiKey(String),
    /// Whether the mutation changed anything.
    Changed(bool),
    /// How many were removed.
    Removed(usize),
    Noted(Value),
    Deletion(Deletion),
    Bulk(Box<BulkJob>),
}

impl MutationOutcome {
    pub fn workflow(self) -> Result<WorkflowRecord, StoreError> {
        match self {
            Self::Workflow(record) => Ok(record),
            other => Err(other.unexpected("a workflow")),
        }
    }

    pub fn schedule(self) -> Result<ScheduleRecord, StoreError> {
        match self {
            Self::Schedule(record) => Ok(*record),
            other => Err(other.unexpected("a schedule")),
        }
    }

    pub fn api_key(self) -> Result<String, StoreError> {
        match self {
            Self::ApiKey(id) => Ok(id),
            other => Err(other.unexpected("an API key")),
        }
    }

    pub fn changed(self) -> Result<bool, StoreError> {
        match self {
            Self::Changed(changed) => Ok(changed),
            other => Err(other.unexpected("a change")),
        }
    }

    pub fn removed(self) -> Result<usize, StoreError> {
        match self {
            Self::Removed(count) => Ok(count),
            other => Err(other.unexpected("a number")),
        }
    }

    pub fn note(self) -> Result<Value, StoreError> {
        match self {
            Self::Noted(note) => Ok(note),
            other => Err(other.unexpected("a note")),
        }
    }

    pub fn deletion(self) -> Result<Deletion, StoreError> {
        match self {
            Self::Deletion(deletion) => Ok(deletion),
            other => Err(other.unexpected("a deletion")),
        }
    }

    pub fn bulk(self) -> Result<BulkJob, StoreError> {
        match self {
            Self::Bulk(job) => Ok(*job),
            other => Err(other.unexpected("a bulk job")),
        }
    }

    fn unexpected(&self, expected: &str) -> StoreError {
        StoreError::Corrupt(format!("an operation came to {self:?} instead of {expected}"))
    }
}

/// The operation id and fingerprint that a caller gives a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRequest {
    pub id: OperationId,
    /// The name of the request, such as `put_schedule`.
    pub kind: Arc<str>,
    /// Hash of the whole request, to distinguish a repetition from another request with the same id.
    pub fingerprint: Hash,
    pub at: Timestamp,
}

impl OperationRequest {
    /// `request` contains everything that the caller chose, and nothing that was derived from the state at the time.
    pub fn new(
        id: OperationId,
        kind: &str,
        request: &impl Serialize,
        at: Timestamp,
    ) -> Result<Self, serde_json::Error> {
        let fingerprint = fingerprint(kind, serde_json::to_value(request)?);
        Ok(Self { id, kind: kind.into(), fingerprint, at })
    }
}

/// The hash of a request. The order of the fields in its objects does not matter.
fn fingerprint(kind: &str, request: Value) -> Hash {
    Hash::of(format!("{kind}\n{}", in_order(request)).as_bytes())
}

fn in_order(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(
                fields.into_iter().map(|(name, field)| (name, in_order(field))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_order).collect()),
        plain => plain,
    }
}

/// An executed operation and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRecord {
    pub request: OperationRequest,
    pub outcome: MutationOutcome,
}

impl OperationRecord {
    /// The answer to a repetition. Another request under the same id is refused.
    pub fn answer(self, to: &OperationRequest) -> Result<MutationOutcome, Refusal> {
        if (&self.request.kind, self.request.fingerprint) == (&to.kind, to.fingerprint) {
            return Ok(self.outcome);
        }
        Err(Refusal::OperationReused(to.id.clone()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fingerprint_is_of_what_is_asked_and_not_of_how_it_is_written() {
        let of = |kind, request: &Value| {
            let id = OperationId::drawn(1);
            OperationRequest::new(id, kind, request, Timestamp::from_millis(1)).unwrap().fingerprint
        };
        let one: Value = serde_json::from_str(r#"{"a": {"x": 1, "y": [2, 3]}, "b": null}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"b": null, "a": {"y": [2, 3], "x": 1}}"#).unwrap();
        assert_eq!(of("put", &one), of("put", &other));
        assert_ne!(of("put", &one), of("remove", &one));
        assert_ne!(of("put", &one), of("put", &json!({"a": {"x": 1, "y": [3, 2]}, "b": null})));
    }

    /// Archives store this hash, so its input must not change: `put_schedule`, a line break, and
    /// `{"a":{"x":1,"y":[2,3]},"b":null}`.
    #[test]
    fn a_fingerprint_stays_as_it_is() {
        let request = json!({"b": null, "a": {"y": [2, 3], "x": 1}});
        assert_eq!(
            fingerprint("put_schedule", request).hex(),
            "c9c6c90bd87d5ef1d86d177ee9e46deb77a4a3cbbc9dc9d8999a9a753860c80b"
        );
    }
}
