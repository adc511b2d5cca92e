//! The suite that every hot store passes, on this one.

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_archive::DataFolder;
use switchyard_core::yard::Limits;
use switchyard_store_conformance::{Backend, Place, hot_store_tests};
use switchyard_store_memory::MemoryStore;

struct Memory;

#[async_trait]
impl Backend for Memory {
    async fn open(&self) -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = DataFolder::open(folder.path()).expect("a data folder");
        let archive = Arc::new(data.archive().expect("an archive"));
        let clock = Place::clock();
        let hot = MemoryStore::new(archive.clone(), Arc::new(clock.clone()), Limits::default());
        Place::new(Arc::new(hot), archive, clock, folder)
    }
}

hot_store_tests!(Memory);
