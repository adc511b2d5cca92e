//! Content lies under its hash.

use bytes::Bytes;
use futures::future::join_all;
use switchyard_core::{CasRef, Hash};
use switchyard_store::StoreError;

use crate::CasBackend;

pub async fn all<B: CasBackend>(backend: &B) {
    content_comes_back_to_the_byte(backend).await;
    the_same_content_is_one_copy(backend).await;
    what_is_not_there_is_said_so(backend).await;
    content_is_still_there_when_opened_again(backend).await;
}

/// Not text, not compressible, different everywhere.
fn noise(len: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

async fn content_comes_back_to_the_byte<B: CasBackend>(backend: &B) {
    let place = backend.place().await;
    let cas = backend.open(&place).await;
    for content in [Bytes::new(), Bytes::from_static(b"\0"), noise(4_097), noise(3_000_000)] {
        let reference = cas.put(content.clone()).await.unwrap();
        assert_eq!(reference, CasRef { hash: Hash::of(&content), bytes: content.len() as u64 });
        assert_eq!(cas.get(reference).await.unwrap(), content);
    }
}

async fn the_same_content_is_one_copy<B: CasBackend>(backend: &B) {
    let place = backend.place().await;
    let cas = backend.open(&place).await;
    let content = noise(100_000);
    let puts = join_all((0..8).map(|_| cas.put(content.clone()))).await;
    for reference in puts {
        assert_eq!(reference.unwrap().hash, Hash::of(&content));
    }
    let again = cas.put(content.clone()).await.unwrap();
    assert_eq!(cas.get(again).await.unwrap(), content);
}

async fn what_is_not_there_is_said_so<B: CasBackend>(backend: &B) {
    let place = backend.place().await;
    let cas = backend.open(&place).await;
    cas.put(Bytes::from_static(b"something else")).await.unwrap();
    let reference = CasRef { hash: Hash::of(b"never put"), bytes: 9 };
    let missing = cas.get(reference).await.unwrap_err();
    assert!(matches!(missing, StoreError::Unknown { .. }), "{missing:?}");
    assert!(missing.to_string().contains(&reference.hash.hex()), "{missing}");
}

async fn content_is_still_there_when_opened_again<B: CasBackend>(backend: &B) {
    let place = backend.place().await;
    let cas = backend.open(&place).await;
    let content = noise(10_000);
    let reference = cas.put(content.clone()).await.unwrap();
    drop(cas);
    assert_eq!(backend.open(&place).await.get(reference).await.unwrap(), content);
}
