//! Workers: slots that claim a task, execute it, and settle it while they claim the next.

mod cache;
mod describe;
mod execute;
mod here;
mod keeper;
mod pool;
mod prepare;
mod slot;

#[cfg(test)]
pub(crate) use here::ClaimHere;
pub use here::Held;
pub use pool::{Busy, WorkerPool, WorkerSettings};
pub use prepare::{Preparation, Prepared, prepare};
