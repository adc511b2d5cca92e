//! Converts columns into values. A column that cannot be read is an error that names the column.

use std::str::FromStr;

use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::de::DeserializeOwned;
use switchyard_core::Timestamp;
use switchyard_store::StoreError;

use super::readers::Unread;

/// A column whose text is an id, a hash or a status.
pub(super) fn parsed<T: FromStr>(row: &Row<'_>, column: &str) -> Result<T, Unread> {
    with(row, column, |text: String| text.parse().ok())
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T, Unread> {
    with(row, column, |text: String| serde_json::from_str(&text).ok())
}

pub(super) fn moment(row: &Row<'_>, column: &str) -> Result<Timestamp, Unread> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

pub(super) fn maybe_moment(row: &Row<'_>, column: &str) -> Result<Option<Timestamp>, Unread> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

pub(super) fn with<S: FromSql, T>(
    row: &Row<'_>,
    column: &str,
    read: impl Fn(S) -> Option<T>,
) -> Result<T, Unread> {
    read(row.get(column)?).ok_or_else(|| damaged(row, column))
}

pub(super) fn maybe<S: FromSql, T>(
    row: &Row<'_>,
    column: &str,
    read: impl Fn(S) -> Option<T>,
) -> Result<Option<T>, Unread> {
    match row.get::<_, Option<S>>(column)? {
        None => Ok(None),
        Some(stored) => read(stored).map(Some).ok_or_else(|| damaged(row, column)),
    }
}

/// The error for an unreadable column. It names the row by its first column, which is an id in all queries that use
/// this.
pub(super) fn damaged(row: &Row<'_>, column: &str) -> Unread {
    let which = row.get::<_, String>(0).unwrap_or_else(|_| "a row".to_owned());
    Unread::Store(StoreError::Corrupt(format!("column `{column}` of {which} cannot be read")))
}
