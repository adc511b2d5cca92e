//! Postgres's errors, grouped by how the caller can react, as sentences.

use deadpool_postgres::PoolError;
use switchyard_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::Target;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PostgresFailure {
    /// The connection or the server is gone, or the server is a standby: try on a new connection.
    Lost,
    /// Another transaction changed the same rows: try again.
    Collision,
    /// The server answers but cannot do it now: disk full, out of memory, too slow, a table or a permission is
    /// missing.
    Unable,
    /// The request itself is wrong, and would fail again.
    Wrong,
}

pub(crate) fn trouble(error: &Error) -> PostgresFailure {
    let Some(state) = error.code() else { return PostgresFailure::Lost };
    match state {
        &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::UNIQUE_VIOLATION => PostgresFailure::Collision,
        &SqlState::READ_ONLY_SQL_TRANSACTION => PostgresFailure::Lost,
        &SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE => PostgresFailure::Unable,
        state => match &state.code()[..2] {
            // Connection exceptions; shutting down or starting up; too many connections and other authorisation.
            "08" | "57" | "28" | "3D" => PostgresFailure::Lost,
            // Values that a column or an index does not take; constraints.
            "22" | "23" | "54" => PostgresFailure::Wrong,
            _ => PostgresFailure::Unable,
        },
    }
}

/// A sentence about an error: the server's message, or the innermost cause.
pub(crate) fn sentence(error: &Error) -> String {
    if let Some(server) = error.as_db_error() {
        return server.message().to_owned();
    }
    innermost(error)
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

pub(crate) fn cannot_connect(target: &Target, error: &Error) -> StoreError {
    StoreError::unavailable(format!("cannot connect to {target}: {}", sentence(error)))
}

pub(crate) fn cannot_write(target: &Target, error: &Error) -> StoreError {
    let why = format!("cannot write to {target}: {}", sentence(error));
    match trouble(error) {
        PostgresFailure::Wrong => StoreError::Corrupt(why),
        PostgresFailure::Lost | PostgresFailure::Collision | PostgresFailure::Unable => {
            StoreError::Unavailable(why)
        }
    }
}

/// The error for a change that was sent, or whose COMMIT was sent: if the connection was lost, the outcome is
/// unknown.
pub(crate) fn lost_while_writing(target: &Target, error: &Error) -> StoreError {
    match cannot_write(target, error) {
        StoreError::Unavailable(why) if may_be_committed(error) => StoreError::OutcomeUnknown(why),
        certain => certain,
    }
}

/// Whether a commit that failed with this error may have been made. A server that names a reason has not committed,
/// unless the reason is that it stops or that the connection breaks.
pub(crate) fn may_be_committed(error: &Error) -> bool {
    match error.code() {
        None => true,
        Some(&SqlState::QUERY_CANCELED) => false,
        Some(state) => matches!(&state.code()[..2], "08" | "57"),
    }
}

pub(crate) fn cannot_read(target: &Target, error: &Error) -> StoreError {
    StoreError::unavailable(format!("cannot read from {target}: {}", sentence(error)))
}

pub(crate) fn no_connection(target: &Target, error: &PoolError) -> StoreError {
    match error {
        PoolError::Backend(e) => cannot_connect(target, e),
        PoolError::Timeout(_) => {
            StoreError::unavailable(format!("no connection to {target} came free in time"))
        }
        other => StoreError::unavailable(format!("cannot connect to {target}: {other}")),
    }
}
