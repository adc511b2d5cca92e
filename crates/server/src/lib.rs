//! The HTTP API of the engine.
//!
//! - [`router`]: all routes over a [`ServerState`]; [`serve`]: serves them on a listener, with limits on connections
//! - `routes`: one file for each resource; a route is registered together with its documentation (`api`)
//! - `problem`: error responses (RFC 9457)
//! - `access`: authentication; `cors`: web pages of other origins
//! - `strict_lines`: rejects request heads with a bare LF, which a proxy could parse differently
//! - `guard`: middleware around every request: time limit, panics, clients that disconnect
//! - `wire`: runs and events in the form that clients see
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
