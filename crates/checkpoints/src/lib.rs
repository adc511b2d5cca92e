//! LangGraph checkpoints in Redis.
//!
//! A thread is a fixed number of keys that share a hash tag ([`keys`]), so that every operation on it is one script
//! call, on one server or in a cluster. Values that LangGraph serialized are stored as opaque bytes ([`Typed`]).
//!
//! - [`client`]: calls over the connections of `switchyard-redis`, repeated after transient errors
//! - [`raw_connection`], [`adaptive_wait`]: a connection with less latency, for callers that wait on their own thread
//! - [`scripts`]: the Lua files; each begins with its contract
//! - [`encoded_call`]: script calls, already encoded as RESP
//! - [`record`], [`writes`]: how a checkpoint and the writes of a task are stored
//! - [`ops`]: one file for each operation
//! - [`audit`]: stored values as JSON, for people and programs that are not LangGraph

pub mod adaptive_wait;
pub mod audit;
mod client;
mod encoded_call;
mod error;
pub mod keys;
pub mod ops;
mod pack;
pub mod raw_connection;
mod record;
mod reply;
mod resp;
mod scripts;
mod store;
mod typed;
mod writes;

pub use client::RetryingClient;
pub use error::Error;
pub use ops::{
    DeltaHistory, Get, Listed, Page, Put, PutWrites, Seek, Stats, Stored, Strategy, ThreadInfo, Ttl,
};
pub use store::Checkpoints;
pub use switchyard_redis::Address;
pub use typed::Typed;
pub use writes::{Write, index_of};
