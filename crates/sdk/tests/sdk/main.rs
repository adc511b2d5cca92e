//! Tests of the SDK's public API.

mod context;
mod errors;
mod example;
mod progress;
mod server;
mod switchyards;
mod time_travel;
mod typed;
mod waits;
