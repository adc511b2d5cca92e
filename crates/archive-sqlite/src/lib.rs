//! Durable storage in a local folder, for a process that runs without Redis and Postgres.
//!
//! - [`DataFolder`]: the folder, its lock and its layout
//! - [`SqliteArchive`]: events and their projections in one SQLite file; many changes share one disk sync
//! - [`DiskCas`]: payloads too large for an event, a file each
//!
//! Nothing here decides what happens to a run: this crate stores events in order and reads them back.

mod cas;
mod examine;
mod folder;
mod notice;
mod private;
mod salvage;
mod sqlite;

pub use cas::DiskCas;
pub use folder::DataFolder;
pub use notice::Notice;
pub use salvage::{RunFault, Salvaged, Surveyed};
pub use sqlite::{Options, SqliteArchive};
