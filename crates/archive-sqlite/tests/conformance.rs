//! Runs the conformance suites of archives and of the CAS against SQLite and the disk.

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::archive::{Backend, CasBackend};
use switchyard_conformance::{archive_tests, cas_tests};
use switchyard_store::{Archive, Cas};
use tempfile::TempDir;

struct OnDisk;

#[async_trait]
impl Backend for OnDisk {
    type Location = TempDir;

    async fn location(&self) -> TempDir {
        tempfile::tempdir().unwrap()
    }

    async fn open(&self, location: &TempDir) -> Arc<dyn Archive> {
        Arc::new(DataFolder::open(location.path()).unwrap().archive().unwrap())
    }
}

#[async_trait]
impl CasBackend for OnDisk {
    type Location = TempDir;

    async fn location(&self) -> TempDir {
        tempfile::tempdir().unwrap()
    }

    async fn open(&self, location: &TempDir) -> Arc<dyn Cas> {
        Arc::new(DataFolder::open(location.path()).unwrap().cas())
    }
}

archive_tests!(OnDisk);
cas_tests!(OnDisk);
