//! Definitions are stored under their hash.

use switchyard_core::Hash;

use crate::archive::Backend;

pub async fn all<B: Backend>(backend: &B) {
    a_definition_comes_back_to_the_letter(backend).await;
    keeping_it_twice_is_once(backend).await;
}

async fn a_definition_comes_back_to_the_letter<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let long = format!("{{\"name\":\"Zürich\\n\",\"pad\":\"{}\"}}", "x".repeat(300_000));
    for text in ["{}", "{\"a\": \"'; --\"}", &long] {
        let hash = Hash::of(text.as_bytes());
        assert_eq!(archive.definition(hash).await.unwrap(), None);
        archive.put_definition(hash, text.into()).await.unwrap();
        assert_eq!(archive.definition(hash).await.unwrap().as_deref(), Some(text));
    }
}

async fn keeping_it_twice_is_once<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let hash = Hash::of(b"{}");
    let (first, second) =
        futures::join!(archive.put_definition(hash, "{}".into()), archive.put_definition(hash, "{}".into()));
    first.unwrap();
    second.unwrap();
    archive.put_definition(hash, "{}".into()).await.unwrap();
    assert_eq!(archive.definition(hash).await.unwrap().as_deref(), Some("{}"));
}
