//! API keys: stored, found, revoked once, never deleted.

use futures::future::join_all;
use switchyard_core::Hash;
use switchyard_store::ApiKeyRecord;

use crate::archive::Backend;
use crate::archive::fixtures::at;

pub async fn all<B: Backend>(backend: &B) {
    a_key_is_kept_and_found(backend).await;
    a_key_is_revoked_once(backend).await;
}

fn record(id: &str, seq: u64) -> ApiKeyRecord {
    let digest = Hash::of(id.as_bytes());
    ApiKeyRecord { id: id.to_owned(), name: "ci".to_owned(), digest, created_at: at(seq), revoked_at: None }
}

async fn a_key_is_kept_and_found<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    assert_eq!(archive.api_keys().await.unwrap(), []);
    assert!(!archive.any_api_key().await.unwrap());
    let (first, second) = (record("b", 1), record("a", 2));
    archive.put_api_key(first.clone()).await.unwrap();
    assert!(archive.any_api_key().await.unwrap());
    archive.put_api_key(second.clone()).await.unwrap();
    let taken = ApiKeyRecord { name: "other".to_owned(), digest: Hash::of(b"other"), ..record("b", 3) };
    archive.put_api_key(taken).await.unwrap();
    drop(archive);
    let archive = backend.open(&location).await;
    assert_eq!(archive.api_keys().await.unwrap(), [first.clone(), second]);
    assert_eq!(archive.api_key("b").await.unwrap(), Some(first), "an id is taken for good");
    assert_eq!(archive.api_key("c").await.unwrap(), None);
}

async fn a_key_is_revoked_once<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    archive.put_api_key(record("a", 1)).await.unwrap();
    let revoking = (0..10).map(|_| archive.revoke_api_key("a", at(5)));
    let revoked = join_all(revoking).await.into_iter().filter(|revoked| *revoked.as_ref().unwrap()).count();
    assert_eq!(revoked, 1);
    assert!(!archive.revoke_api_key("nobody", at(5)).await.unwrap());
    drop(archive);
    let archive = backend.open(&location).await;
    let kept = ApiKeyRecord { revoked_at: Some(at(5)), ..record("a", 1) };
    assert_eq!(archive.api_keys().await.unwrap(), [kept]);
    assert!(archive.any_api_key().await.unwrap(), "it was made once");
}
