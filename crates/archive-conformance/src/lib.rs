//! The conformance suite of every [`Archive`] and every [`Cas`].
//!
//! A backend says how a place for it is made and opened, and gets one test per group:
//!
//! ```ignore
//! struct Sqlite;
//! impl Backend for Sqlite { … }
//!
//! switchyard_archive_conformance::archive_tests!(Sqlite);
//! ```
//!
//! A group is a file here; `all` in it runs its checks, each in a place of its own. The checks are private, so one
//! that `all` forgets is a compiler warning. They panic, like any test.

pub mod api_keys;
pub mod append;
pub mod approvals;
pub mod cache;
pub mod cas;
pub mod dead_letters;
pub mod definitions;
pub mod fixtures;
pub mod idempotency;
pub mod mark;
pub mod operations;
pub mod reopen;
pub mod retain;
pub mod run_operations;
pub mod runs;
pub mod schedules;
pub mod workflows;

use std::sync::Arc;

use async_trait::async_trait;
use switchyard_store::{Archive, Cas};

/// How to come by archives of one kind.
#[async_trait]
pub trait Backend: Sync {
    /// Where an archive lies: a folder, a schema. It may clean up when it is dropped.
    type Location: Send + Sync;

    /// A new, empty location that no other test uses.
    async fn location(&self) -> Self::Location;

    /// Opens what is there. Called again for the same place after the archive of the first call was dropped.
    async fn open(&self, location: &Self::Location) -> Arc<dyn Archive>;
}

/// The same for a CAS.
#[async_trait]
pub trait CasBackend: Sync {
    type Location: Send + Sync;

    async fn location(&self) -> Self::Location;

    async fn open(&self, location: &Self::Location) -> Arc<dyn Cas>;
}

/// Every group for an archive, one after the other.
pub async fn run_all<B: Backend>(backend: &B) {
    api_keys::all(backend).await;
    append::all(backend).await;
    approvals::all(backend).await;
    cache::all(backend).await;
    dead_letters::all(backend).await;
    definitions::all(backend).await;
    idempotency::all(backend).await;
    mark::all(backend).await;
    operations::all(backend).await;
    reopen::all(backend).await;
    retain::all(backend).await;
    run_operations::all(backend).await;
    runs::all(backend).await;
    schedules::all(backend).await;
    workflows::all(backend).await;
}

/// One `#[tokio::test]` per group, for a [`Backend`]. The crate that calls this needs tokio.
#[macro_export]
macro_rules! archive_tests {
    ($backend:expr) => {
        $crate::archive_tests!($backend;
            api_keys append approvals cache dead_letters definitions idempotency mark operations reopen
            retain run_operations runs schedules workflows);
    };
    ($backend:expr; $($group:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $group() {
                $crate::$group::all(&$backend).await;
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
