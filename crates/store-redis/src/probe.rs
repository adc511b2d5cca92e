//! Whether Redis can be reached, for a process that starts at the same time as its server.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::RedisError;
use switchyard_store::StoreError;

use crate::address;
use crate::connection::SharedConnection;
use crate::error::RedisFailure;

/// Why the server cannot be reached at the moment. `None` if it answers, even with a refusal, or if
/// it is no address: opening the store then says what is wrong.
pub async fn probe(url: &str) -> Option<StoreError> {
    let (client, location) = address::client(url).ok()?;
    let link = SharedConnection::new(client, location, Arc::default());
    let error = link.connection().await.err()?;
    let trouble = RedisFailure::of(&error);
    let is_away = trouble == RedisFailure::Unreachable && !is_about_trust(&error);
    is_away.then(|| trouble.told(link.location(), &error))
}

/// TLS that one of the two does not trust is an error of input and output as well, and does not pass.
fn is_about_trust(error: &RedisError) -> bool {
    let shared = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let io = shared.and_then(|error| error.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
}
