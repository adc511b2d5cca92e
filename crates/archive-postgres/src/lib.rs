//! Durable storage in Postgres, shared by any number of processes.
//!
//! - [`Target`]: which server, which schema, and how to reach it
//! - [`probe`]: whether the server can be reached
//! - [`migrate`]: creates the tables, or brings them up to date; [`remove`] drops them all
//! - [`PostgresArchive`]: events and their projections; appends that wait share one commit
//! - [`PostgresCas`]: payloads too large for an event, a row each
//!
//! Nothing here decides what happens to a run: this crate stores events in order and reads them back.

mod archive;
mod cas;
mod error;
mod migrations;
mod pool;
mod probe;
mod target;
mod text;
mod tls;

pub use archive::{Options, PostgresArchive};
pub use cas::PostgresCas;
pub use migrations::{examine, migrate, remove};
pub use probe::probe;
pub use target::{InvalidTarget, Target};
