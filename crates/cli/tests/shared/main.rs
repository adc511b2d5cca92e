//! Real processes that share a Redis and a Postgres: stores and processes stop, limits hold, and metrics, spans and
//! payloads are complete.

mod archive_away;
mod archives;
mod collector;
mod fixture;
mod kept;
mod limits;
mod observed;
mod redis_away;
