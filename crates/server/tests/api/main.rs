//! The API over real connections: a server on a free port, its state in a temporary folder.

mod collector;
mod errors;
mod events;
mod harness;
mod openapi;
mod python;
mod runs;
mod tasks;
mod traces;
