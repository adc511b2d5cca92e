//! Checks whether Redis can be reached, for a process that starts at the same time as its server.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::RedisError;
use switchyard_redis::RedisFailure;
use switchyard_store::StoreError;

use crate::client;
use crate::health::Health;

/// The reason why the server cannot be reached at the moment. `None` if the server answers, even with a refusal, or if
/// the address is invalid: opening the store then reports the error.
pub async fn probe(url: &str) -> Option<StoreError> {
    let connector = client::connector(url).ok()?;
    let error = connector.connect().await.err()?;
    let failure = RedisFailure::of(&error);
    let is_away = failure == RedisFailure::Unreachable && !is_about_trust(&error);
    let health = Health::new(connector.address().server_name(), Arc::default());
    is_away.then(|| health.explain(failure, &error))
}

/// Whether one side does not trust the other's certificate: an I/O error that waiting does not cure.
fn is_about_trust(error: &RedisError) -> bool {
    let shared = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let io = shared.and_then(|error| error.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
}
