//! Cached results of nodes with a `cache`. An unreachable cache is a cache miss.

use std::time::Duration;

use switchyard_core::Payload;
use switchyard_lang::Program;

use crate::kinds::Services;

pub(super) async fn look_up(services: &Services, program: &Program, key: &str) -> Option<Payload> {
    let found = services.archive.cached(&scope(program), key, services.clock.now()).await;
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, "the cache could not be read");
        None
    })
}

pub(super) async fn remember(
    services: &Services,
    program: &Program,
    key: &str,
    value: Payload,
    ttl: Duration,
) {
    let kept = services.archive.cache(&scope(program), key, value, services.clock.now(), ttl).await;
    if let Err(error) = kept {
        tracing::warn!(%error, "a result could not be remembered");
    }
}

fn scope(program: &Program) -> String {
    format!("workflow:{}", program.ir.name)
}
