//! A Redis to measure on: names of its own, which are removed afterwards, and what the server says about itself.

mod commits;
mod limit;
mod ping;
mod prefix;

pub(crate) use commits::Commits;
pub(crate) use limit::{Limit, with_limit};
pub(crate) use ping::Pings;
pub use prefix::RedisAt;
pub(crate) use prefix::RedisPrefix;
