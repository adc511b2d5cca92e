//! Workers: slots that claim a task, execute it, and settle it while they claim the next.

mod cache;
mod describe;
mod execute;
mod here;
mod keeper;
mod lifecycle;
mod pool;
mod prepare;
mod slot;

#[cfg(test)]
pub(crate) use here::ClaimHere;
pub use here::Held;
pub use lifecycle::{Begun, Report, begin, finish};
pub use pool::{Busy, WorkerPool, WorkerSettings};
pub use prepare::Prepared;
