//! The hot store in process: the pure [`InFlight`](switchyard_core::in_flight::InFlight) behind a lock, journalled to
//! an archive.
//!
//! Every call changes the in-flight state and hands the events to the archive while it holds the lock, so that the
//! journal has the order of the changes. A call answers when its events are durable; concurrent calls share the next
//! commit. A call may claim nodes that another call released before that is durable: its own answer waits for a later
//! place in the same journal.

mod store;
mod workers;

pub use store::MemoryStore;
