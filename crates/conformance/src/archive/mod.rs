//! The conformance suite of every [`Archive`] and every [`Cas`].
//!
//! A backend creates and opens locations, and gets one test per group:
//!
//! ```ignore
//! struct Sqlite;
//! impl Backend for Sqlite { … }
//!
//! switchyard_conformance::archive_tests!(Sqlite);
//! ```
//!
//! A group is a file here, named after the capability that it checks, or after a part of one: `mark` and `reopen` are
//! about the journal, `idempotency`, `run_filters` and `run_operations` about the index of runs. `all` in it runs its
//! checks, each in a location of its own. The checks are private, so one that `all` forgets is a compiler warning.
//! They panic, like any test.

pub mod access;
pub mod approvals;
pub mod bulk;
pub mod cas;
pub mod dead_letters;
pub mod definitions;
pub mod deletion;
pub mod fixtures;
pub mod idempotency;
pub mod journal;
pub mod mark;
pub mod operations;
pub mod payload_holders;
pub mod registry;
pub mod reopen;
pub mod result_cache;
pub mod retention;
pub mod run_filters;
pub mod run_index;
pub mod run_operations;
pub mod schedules;

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_store::{Archive, Cas};

/// Creates and opens archives of one backend.
#[async_trait]
pub trait Backend: Sync {
    /// The location of an archive: a folder, a schema. It may clean up when it is dropped.
    type Location: Send + Sync;

    /// A new, empty location that no other test uses.
    async fn location(&self) -> Self::Location;

    /// Opens the archive at a location. Called again for the same location after the first archive was dropped.
    async fn open(&self, location: &Self::Location) -> Arc<dyn Archive>;
}

/// Creates and opens CAS storages of one backend.
#[async_trait]
pub trait CasBackend: Sync {
    type Location: Send + Sync;

    async fn location(&self) -> Self::Location;

    async fn open(&self, location: &Self::Location) -> Arc<dyn Cas>;
}

/// Runs every group for an archive, one after the other.
pub async fn run_all<B: Backend>(backend: &B) {
    access::all(backend).await;
    approvals::all(backend).await;
    bulk::all(backend).await;
    dead_letters::all(backend).await;
    definitions::all(backend).await;
    deletion::all(backend).await;
    idempotency::all(backend).await;
    journal::all(backend).await;
    mark::all(backend).await;
    operations::all(backend).await;
    payload_holders::all(backend).await;
    registry::all(backend).await;
    reopen::all(backend).await;
    result_cache::all(backend).await;
    retention::all(backend).await;
    run_filters::all(backend).await;
    run_index::all(backend).await;
    run_operations::all(backend).await;
    schedules::all(backend).await;
}

/// One `#[tokio::test]` per group, for a [`Backend`]. The crate that calls this needs tokio.
#[macro_export]
macro_rules! archive_tests {
    ($backend:expr) => {
        $crate::archive_tests!($backend;
            access approvals bulk dead_letters definitions deletion idempotency journal mark operations payload_holders
            registry reopen result_cache retention run_filters run_index run_operations schedules);
    };
    ($backend:expr; $($group:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $group() {
                $crate::archive::$group::all(&$backend).await;
            }
        )*
    };
}

/// One `#[tokio::test]` for a [`CasBackend`].
#[macro_export]
macro_rules! cas_tests {
    ($backend:expr) => {
        $crate::archive_tests!($backend; cas);
    };
}
