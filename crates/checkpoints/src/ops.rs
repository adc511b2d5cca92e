//! The operations on checkpoints: methods of [`crate::Checkpoints`], one file for each.

mod copy;
mod delete;
mod delta;
mod get;
mod list;
mod prune;
mod put;
mod put_writes;
mod stats;
mod threads;
mod ttl;

pub use delta::DeltaHistory;
pub use get::{Get, Stored};
pub use list::{Listed, Page, Seek};
pub use prune::Strategy;
pub use put::Put;
pub use put_writes::PutWrites;
pub use stats::Stats;
pub use threads::ThreadInfo;
pub use ttl::Ttl;
