//! The hot store in process: the pure [`InFlight`](switchyard_core::in_flight::InFlight) behind a lock, journalled to an
//! archive.
//!
//! Every call changes the in-flight state and hands the events to the archive while it holds the lock, so that the order of
//! the journal is the order of the changes. It answers when the archive says they are durable; calls that come in
//! meanwhile share the next commit. What one call has released another may claim at once: its own answer waits
//! for a later place in the same journal.

mod store;
mod workers;

pub use store::MemoryStore;
