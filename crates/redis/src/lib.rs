//! The way to Redis, for the hot store and for the checkpointer: addresses, TLS, Sentinel, Cluster, connections that are
//! made again when they are lost, scripts, and the fenced lock. It knows no keys of either, and retries nothing by itself.

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
