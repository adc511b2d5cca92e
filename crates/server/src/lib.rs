//! The HTTP side of the engine.
//!
//! - [`router`]: every route over a [`ServerState`]; [`serve`]: the same on a listener, with limits on connections
//! - `routes`: one file for each resource; a route is registered together with its documentation (`api`)
//! - `problem`: how every failure is answered (RFC 9457)
//! - `access`: who may come in; `cors`: which web pages may
//! - `strict_lines`: requests whose lines two parties could read differently
//! - `guard`: what holds for all requests: time, panics, clients that go away
//! - `wire`: runs and events as clients see them
//!
//! This crate never opens a store, never decides what happens to a run, and never reads the environment.

mod access;
mod api;
mod cors;
mod extract;
mod files;
mod guard;
mod limits;
mod openapi;
mod problem;
mod routes;
mod serve;
mod state;
mod strict_lines;
mod wire;

pub use access::Access;
pub use files::allow_many_connections;
pub use limits::Limits;
pub use openapi::document as openapi;
pub use routes::router;
pub use serve::{serve, serve_health};
pub use state::ServerState;
