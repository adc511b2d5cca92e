//! The Redis client of the hot store and the checkpointer: addresses, TLS, Sentinel, Cluster, a shared connection that
//! reconnects, scripts, and the fenced lock. This crate knows the keys of neither, and never retries a call.

mod address;
mod connection;
mod connector;
mod failure;
mod lock;
mod script;
mod sentinel;
mod shared;
mod tls;

pub use address::{Address, AddressError, Location};
pub use connection::Connection;
pub use connector::{Connector, Timeouts};
pub use failure::{RedisFailure, detail, is_unknown_script};
pub use lock::{CLOCK_INCLUDE, FencedLock, LOCK_INCLUDE, LOCK_RENEW, LOCK_TAKE, RunScript, Taken};
pub use script::{CallError, Effect, Script};
pub use sentinel::Sentinel;
pub use shared::SharedConnection;
