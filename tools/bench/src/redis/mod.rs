//! A Redis to measure on: keys under a prefix of their own, removed afterwards, and statistics of the server.

mod commits;
mod limit;
mod ping;
mod prefix;

pub(crate) use commits::Commits;
pub(crate) use limit::{Limit, with_limit};
pub(crate) use ping::Pings;
pub use prefix::RedisAt;
pub(crate) use prefix::RedisPrefix;
