//! Whether Postgres can be reached, for a process that starts at the same time as its server.

use std::error::Error as _;
use std::io;

use switchyard_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::Target;
use crate::error::cannot_connect;

/// Why the server cannot be reached at the moment. `None` if it answers, even with a refusal, or if it cannot
/// be tried: opening the archive then says what is wrong.
pub async fn probe(target: &Target) -> Option<StoreError> {
    let error = target.config.connect(target.connector().ok()?).await.err()?;
    is_away(&error).then(|| cannot_connect(target, &error))
}

fn is_away(error: &Error) -> bool {
    if let Some(state) = error.code() {
        // It starts, or is about to end.
        return *state == SqlState::CANNOT_CONNECT_NOW;
    }
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    // TLS that one of the two does not trust is an error of input and output as well, and does not pass.
    error.is_closed() || io.is_some_and(|error| error.kind() != io::ErrorKind::InvalidData)
}
