//! Runs the conformance suite of the CAS against object stores in memory and in a folder.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::memory::InMemory;
use object_store::path::Path;
use switchyard_cas_objects::ObjectCas;
use switchyard_conformance::archive::CasBackend;
use switchyard_store::{Cas, StoreError};
use tempfile::TempDir;

struct Memory;

#[async_trait]
impl CasBackend for Memory {
    type Location = Arc<InMemory>;

    async fn location(&self) -> Arc<InMemory> {
        Arc::new(InMemory::new())
    }

    async fn open(&self, location: &Arc<InMemory>) -> Arc<dyn Cas> {
        Arc::new(ObjectCas::over(location.clone(), Path::from("some/prefix")))
    }
}

struct Folder;

fn in_folder(folder: &TempDir) -> ObjectCas {
    let none: [(&str, &str); 0] = [];
    ObjectCas::open(&format!("file://{}/cas", folder.path().display()), none).unwrap()
}

#[async_trait]
impl CasBackend for Folder {
    type Location = TempDir;

    async fn location(&self) -> TempDir {
        tempfile::tempdir().unwrap()
    }

    async fn open(&self, location: &TempDir) -> Arc<dyn Cas> {
        Arc::new(in_folder(location))
    }
}

mod memory {
    switchyard_conformance::cas_tests!(super::Memory);
}

mod folder {
    switchyard_conformance::cas_tests!(super::Folder);
}

#[tokio::test]
async fn a_damaged_payload_is_refused_and_healed_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let cas = in_folder(&folder);
    let reference = cas.put("the content".into()).await.unwrap();
    let hex = reference.hash.hex();
    std::fs::write(folder.path().join("cas").join(&hex[..2]).join(&hex), "the c0ntent").unwrap();
    let damaged = cas.get(reference).await.unwrap_err();
    assert!(
        matches!(&damaged, StoreError::Corrupt(what) if what.contains(&reference.to_string())),
        "{damaged:?}"
    );
    cas.put("the content".into()).await.unwrap();
    assert_eq!(cas.get(reference).await.unwrap(), "the content");
}
