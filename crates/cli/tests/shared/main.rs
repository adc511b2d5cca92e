//! Real processes that share a Redis and a Postgres: one of these goes away under them, one of them goes away itself, and
//! what they leave behind beside the history.

mod archive_away;
mod archives;
mod collector;
mod fixture;
mod kept;
mod limits;
mod observed;
mod redis_away;
