//! Names for definitions, in versions.

use futures::future::join_all;
use switchyard_core::Hash;
use switchyard_store::WorkflowRecord;

use crate::archive::Backend;
use crate::archive::fixtures::at;

pub async fn all<B: Backend>(backend: &B) {
    a_new_definition_is_a_new_version(backend).await;
    the_list_has_the_newest_of_each(backend).await;
    registering_at_once_gives_every_version_once(backend).await;
}

fn record(name: &str, version: u32, definition: &str, seq: u64) -> WorkflowRecord {
    let definition = Hash::of(definition.as_bytes());
    WorkflowRecord { name: name.to_owned(), version, definition, created_at: at(seq) }
}

async fn a_new_definition_is_a_new_version<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    assert_eq!(archive.workflow("enrich", None).await.unwrap(), None);

    let register = async |definition: &str, seq| {
        archive.register_workflow("enrich", Hash::of(definition.as_bytes()), at(seq)).await.unwrap()
    };
    let first = record("enrich", 1, "a", 1);
    let second = record("enrich", 2, "b", 3);
    let third = record("enrich", 3, "a", 4);
    assert_eq!(register("a", 1).await, first);
    assert_eq!(register("a", 2).await, first, "the newest is this one already");
    assert_eq!(register("b", 3).await, second);
    assert_eq!(register("a", 4).await, third, "going back is a new version too");

    assert_eq!(archive.workflow("enrich", None).await.unwrap(), Some(third));
    assert_eq!(archive.workflow("enrich", Some(1)).await.unwrap(), Some(first));
    assert_eq!(archive.workflow("enrich", Some(2)).await.unwrap(), Some(second));
    assert_eq!(archive.workflow("enrich", Some(4)).await.unwrap(), None);
    assert_eq!(archive.workflow("Enrich", None).await.unwrap(), None);
}

async fn the_list_has_the_newest_of_each<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    assert_eq!(archive.workflows().await.unwrap(), []);
    for (name, definition, seq) in [("b", "1", 1), ("a", "2", 2), ("b", "3", 3)] {
        archive.register_workflow(name, Hash::of(definition.as_bytes()), at(seq)).await.unwrap();
    }
    assert_eq!(archive.workflows().await.unwrap(), [record("a", 1, "2", 2), record("b", 2, "3", 3)]);
}

async fn registering_at_once_gives_every_version_once<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let registering = (0..20u8).map(|n| archive.register_workflow("enrich", Hash::of(&[n]), at(1)));
    let mut versions: Vec<u32> =
        join_all(registering).await.into_iter().map(|record| record.unwrap().version).collect();
    versions.sort_unstable();
    assert!(versions.into_iter().eq(1..=20));
}
