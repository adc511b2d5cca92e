//! Assembles a process: opens a hot store, an archive and a CAS, and starts the duties that this pair needs.
//!
//! [`embedded`] is everything in one process: memory and a SQLite file. [`distributed`] is Redis and Postgres, shared
//! by any number of processes. Above this crate no code names a concrete store.

#[cfg(feature = "distributed")]
pub mod distributed;
pub mod embedded;
#[cfg(feature = "distributed")]
mod registration;
