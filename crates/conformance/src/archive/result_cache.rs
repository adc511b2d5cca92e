//! Cached results.

use std::time::Duration;

use serde_json::json;
use switchyard_core::{CasRef, Hash, Payload};

use crate::archive::Backend;
use crate::archive::fixtures::at;

pub async fn all<B: Backend>(backend: &B) {
    a_result_is_remembered_until_it_expires(backend).await;
    the_newest_result_counts(backend).await;
    scopes_and_keys_are_apart(backend).await;
}

fn number(n: u32) -> Payload {
    Payload::from_value(&json!({ "n": n }))
}

async fn a_result_is_remembered_until_it_expires<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    assert_eq!(archive.cached("save", "k", at(0)).await.unwrap(), None);

    let large = Payload::Cas(CasRef { hash: Hash::of(b"large"), bytes: 70_000 });
    archive.cache("save", "k", large.clone(), at(0), Duration::from_secs(10)).await.unwrap();
    assert_eq!(archive.cached("save", "k", at(0)).await.unwrap(), Some(large.clone()));
    assert_eq!(archive.cached("save", "k", at(9)).await.unwrap(), Some(large));
    assert_eq!(archive.cached("save", "k", at(10)).await.unwrap(), None);

    // Caching another result may remove expired results, and no others.
    archive.cache("save", "long", number(1), at(10), Duration::MAX).await.unwrap();
    archive.cache("save", "other", number(2), at(100), Duration::from_secs(1)).await.unwrap();
    assert_eq!(archive.cached("save", "long", at(1_000_000)).await.unwrap(), Some(number(1)));
}

async fn the_newest_result_counts<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    archive.cache("save", "k", number(1), at(0), Duration::from_secs(100)).await.unwrap();
    archive.cache("save", "k", number(2), at(1), Duration::from_secs(4)).await.unwrap();
    assert_eq!(archive.cached("save", "k", at(4)).await.unwrap(), Some(number(2)));
    assert_eq!(archive.cached("save", "k", at(5)).await.unwrap(), None, "with its own time to live");
}

async fn scopes_and_keys_are_apart<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let hour = Duration::from_secs(3600);
    archive.cache("a", "bc", number(1), at(0), hour).await.unwrap();
    archive.cache("ab", "c", number(2), at(0), hour).await.unwrap();
    assert_eq!(archive.cached("a", "bc", at(1)).await.unwrap(), Some(number(1)));
    assert_eq!(archive.cached("ab", "c", at(1)).await.unwrap(), Some(number(2)));
    assert_eq!(archive.cached("a", "c", at(1)).await.unwrap(), None);
}
