//! Checks whether Postgres can be reached, for a process that starts at the same time as its server.

use std::error::Error as _;
use std::io;

use switchyard_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::Target;
use crate::error::cannot_connect;

/// Why the server cannot be reached at the moment. `None` if it answers, even with a refusal, or if the TLS settings
/// are invalid: opening the archive then reports the error.
pub async fn probe(target: &Target) -> Option<StoreError> {
    let error = target.config.connect(target.connector().ok()?).await.err()?;
    is_away(&error).then(|| cannot_connect(target, &error))
}

fn is_away(error: &Error) -> bool {
    if let Some(state) = error.code() {
        // The server is starting up or shutting down.
        return *state == SqlState::CANNOT_CONNECT_NOW;
    }
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    // A TLS certificate that is not trusted is also an I/O error, but a permanent one.
    error.is_closed() || io.is_some_and(|error| error.kind() != io::ErrorKind::InvalidData)
}
