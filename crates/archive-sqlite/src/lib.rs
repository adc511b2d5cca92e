//! History for good, on disk: what a process without Redis and Postgres stands on.
//!
//! - [`DataFolder`]: the folder, its lock, and what lies where in it
//! - [`SqliteArchive`]: events and their projections in one SQLite file; many changes share one disk sync
//! - [`DiskCas`]: payloads too large for an event, a file each
//!
//! Nothing here decides what happens to a run: it keeps what it is told, in order, and gives it back.

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
