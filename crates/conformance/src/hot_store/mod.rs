//! The conformance suite of every hot store, called with a factory.
//!
//! A backend implements [`Backend`] and writes `switchyard_conformance::hot_store_tests!(MyBackend);`, which
//! makes a test of each group. The groups name the invariants of the design that they are about.

pub mod accept;
pub mod control;
mod fixture;
pub mod functions;
pub mod large;
pub mod leases;
pub mod operations;
pub mod progress;
pub mod restore;
pub mod starts;
pub mod steps;
pub mod waits;
pub mod workers;

pub use fixture::{Backend, Fixture, fresh_operation};

/// One test for each group of the suite.
#[macro_export]
macro_rules! hot_store_tests {
    ($backend:expr) => {
        $crate::hot_store_tests!($backend; accept, starts, steps, functions, waits, control, leases, operations, progress, restore, large, workers);
    };
    ($backend:expr; $($group:ident),*) => {
        $(
            #[tokio::test]
            async fn $group() {
                $crate::hot_store::$group::all(&$backend).await;
            }
        )*
    };
}
