//! Content is stored under its hash.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use switchyard_core::{CasRef, Hash};
use switchyard_store::StoreError;

use crate::archive::CasBackend;

pub async fn all<B: CasBackend>(backend: &B) {
    content_comes_back_to_the_byte(backend).await;
    the_same_content_is_one_copy(backend).await;
    what_is_not_there_is_said_so(backend).await;
    content_is_still_there_when_opened_again(backend).await;
    what_is_old_is_listed_in_pages(backend).await;
    what_is_young_is_not_removed(backend).await;
}

const HOUR: Duration = Duration::from_secs(3600);

/// Bytes that are not text, not compressible, and without repetition.
fn noise(len: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

async fn content_comes_back_to_the_byte<B: CasBackend>(backend: &B) {
    let location = backend.location().await;
    let cas = backend.open(&location).await;
    for content in [Bytes::new(), Bytes::from_static(b"\0"), noise(4_097), noise(3_000_000)] {
        let reference = cas.put(content.clone()).await.unwrap();
        assert_eq!(reference, CasRef { hash: Hash::of(&content), bytes: content.len() as u64 });
        assert_eq!(cas.get(reference).await.unwrap(), content);
    }
}

async fn the_same_content_is_one_copy<B: CasBackend>(backend: &B) {
    let location = backend.location().await;
    let cas = backend.open(&location).await;
    let content = noise(100_000);
    let puts = join_all((0..8).map(|_| cas.put(content.clone()))).await;
    for reference in puts {
        assert_eq!(reference.unwrap().hash, Hash::of(&content));
    }
    let again = cas.put(content.clone()).await.unwrap();
    assert_eq!(cas.get(again).await.unwrap(), content);
}

async fn what_is_not_there_is_said_so<B: CasBackend>(backend: &B) {
    let location = backend.location().await;
    let cas = backend.open(&location).await;
    cas.put(Bytes::from_static(b"something else")).await.unwrap();
    let reference = CasRef { hash: Hash::of(b"never put"), bytes: 9 };
    let missing = cas.get(reference).await.unwrap_err();
    assert!(matches!(missing, StoreError::Unknown { .. }), "{missing:?}");
    assert!(missing.to_string().contains(&reference.hash.hex()), "{missing}");
}

async fn what_is_old_is_listed_in_pages<B: CasBackend>(backend: &B) {
    let location = backend.location().await;
    let cas = backend.open(&location).await;
    assert_eq!(cas.aged(Duration::ZERO, None, 10).await.unwrap(), []);
    let mut expected = Vec::new();
    for n in 0..20u8 {
        expected.push(cas.put(Bytes::from(vec![n])).await.unwrap().hash);
    }
    expected.sort_unstable();
    let mut listed: Vec<Hash> = Vec::new();
    loop {
        let page = cas.aged(Duration::ZERO, listed.last().copied(), 7).await.unwrap();
        assert!(page.len() <= 7);
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    assert_eq!(listed, expected);
    assert_eq!(cas.aged(HOUR, None, 100).await.unwrap(), [], "nothing here is that old");
}

async fn what_is_young_is_not_removed<B: CasBackend>(backend: &B) {
    let location = backend.location().await;
    let cas = backend.open(&location).await;
    let content = noise(10_000);
    let reference = cas.put(content.clone()).await.unwrap();
    let other = cas.put(noise(10_001)).await.unwrap();
    assert!(!cas.remove(reference.hash, HOUR).await.unwrap());
    assert_eq!(cas.get(reference).await.unwrap(), content);

    assert!(cas.remove(reference.hash, Duration::ZERO).await.unwrap());
    assert!(!cas.remove(reference.hash, Duration::ZERO).await.unwrap(), "it is gone already");
    let missing = cas.get(reference).await.unwrap_err();
    assert!(matches!(missing, StoreError::Unknown { .. }), "{missing:?}");
    cas.get(other).await.unwrap();

    cas.put(content.clone()).await.unwrap();
    assert_eq!(cas.get(reference).await.unwrap(), content);
}

async fn content_is_still_there_when_opened_again<B: CasBackend>(backend: &B) {
    let location = backend.location().await;
    let cas = backend.open(&location).await;
    let content = noise(10_000);
    let reference = cas.put(content.clone()).await.unwrap();
    drop(cas);
    assert_eq!(backend.open(&location).await.get(reference).await.unwrap(), content);
}
