//! Whether Redis can be reached, for a process that starts at the same time as its server.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::RedisError;
use switchyard_redis::RedisFailure;
use switchyard_store::StoreError;

use crate::client;
use crate::health::Health;

/// Why the server cannot be reached at the moment. `None` if it answers, even with a refusal, or if the address is not
/// one: opening the store then says what is wrong.
pub async fn probe(url: &str) -> Option<StoreError> {
    let connector = client::connector(url).ok()?;
    let error = connector.connect().await.err()?;
    let failure = RedisFailure::of(&error);
    let is_away = failure == RedisFailure::Unreachable && !is_about_trust(&error);
    let health = Health::new(connector.address().server_name(), Arc::default());
    is_away.then(|| health.explain(failure, &error))
}

/// A certificate that one side does not trust is an I/O error as well, and does not pass.
fn is_about_trust(error: &RedisError) -> bool {
    let shared = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let io = shared.and_then(|error| error.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
}
