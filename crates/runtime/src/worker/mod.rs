//! Workers: slots that claim a task, execute it, and settle it while they claim the next.

mod cache;
mod cache_key;
mod describe;
mod execute;
mod heartbeat;
mod lifecycle;
mod local;
mod pool;
mod prepare;
mod slot;

pub use lifecycle::{Begun, Report, begin, finish};
pub use local::Held;
#[cfg(test)]
pub(crate) use local::LocalClaim;
pub use pool::{Busy, WorkerPool, WorkerSettings};
pub use prepare::Prepared;
