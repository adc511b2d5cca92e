//! Runs the conformance suite of hot stores on the memory store.

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::hot_store::{Backend, Fixture};
use switchyard_conformance::hot_store_tests;
use switchyard_core::in_flight::Limits;
use switchyard_store_memory::MemoryStore;

struct Memory;

#[async_trait]
impl Backend for Memory {
    async fn open(&self) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = DataFolder::open(folder.path()).expect("a data folder");
        let archive = Arc::new(data.archive().expect("an archive"));
        let clock = Fixture::clock();
        let hot = MemoryStore::new(archive.clone(), Arc::new(clock.clone()), Limits::default());
        Fixture::new(Arc::new(hot), archive, clock, folder)
    }
}

hot_store_tests!(Memory);
