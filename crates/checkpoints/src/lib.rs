//! LangGraph checkpoints in Redis.
//!
//! A thread is a fixed number of keys that share a hash tag ([`keys`]), so that everything done to it is one script call,
//! on one server or in a cluster. What LangGraph serialized is carried and not looked into ([`Typed`]).
//!
//! - [`address`], [`link`]: where Redis is, and the way there
//! - [`wire`], [`vigil`]: a shorter way, for callers that have no time to lose
//! - [`scripts`]: the Lua files; each begins with its contract
//! - [`words`]: calls of them in the form in which they are sent
//! - [`record`], [`writes`]: how a checkpoint and the writes of a task are stored
//! - [`ops`]: one file for each thing that can be done
//! - [`audit`]: stored values as JSON, for people and programs that are not LangGraph

pub mod address;
pub mod audit;
mod error;
pub mod keys;
mod link;
pub mod ops;
mod pack;
mod record;
mod reply;
mod resp;
mod scripts;
mod store;
mod typed;
pub mod vigil;
pub mod wire;
mod words;
mod writes;

pub use address::Address;
pub use error::Error;
pub use link::Link;
pub use ops::{
    DeltaHistory, Get, Listed, Page, Put, PutWrites, Seek, Stats, Stored, Strategy, ThreadInfo, Ttl,
};
pub use store::Checkpoints;
pub use typed::Typed;
pub use writes::{Write, index_of};
