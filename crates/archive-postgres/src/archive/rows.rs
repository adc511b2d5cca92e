//! Converts values into columns and back. A column that cannot be read is an error that names the column.

use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchyard_core::Timestamp;
use switchyard_store::StoreError;
use tokio_postgres::Row;

use crate::text;

/// A column whose text is an id, a hash or a status.
pub(super) fn parsed<T: FromStr>(row: &Row, column: &str) -> Result<T, StoreError> {
    row.get::<_, &str>(column).parse().map_err(|_| damaged(column, row.get(0)))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, StoreError> {
    serde_json::from_str(row.get(column)).map_err(|_| damaged(column, row.get(0)))
}

pub(super) fn moment(row: &Row, column: &str) -> Timestamp {
    Timestamp::from_millis(row.get(column))
}

pub(super) fn maybe_moment(row: &Row, column: &str) -> Option<Timestamp> {
    row.get::<_, Option<i64>>(column).map(Timestamp::from_millis)
}

pub(super) fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

pub(super) fn shared(row: &Row, column: &str) -> Arc<str> {
    text::read(row.get(column)).into()
}

pub(super) fn maybe_shared(row: &Row, column: &str) -> Option<Arc<str>> {
    row.get::<_, Option<String>>(column).map(|stored| text::read(stored).into())
}

/// The error for an unreadable column; `which` names the row.
pub(super) fn damaged(column: &str, which: &str) -> StoreError {
    StoreError::Corrupt(format!("column `{column}` of {which} cannot be read"))
}

/// Serializes a value to JSON. Stored values have string keys and finite numbers only, so this always succeeds.
pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A limit as Postgres's `i64`.
pub(super) fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
