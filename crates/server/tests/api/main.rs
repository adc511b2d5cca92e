//! The API over real connections: a server on a free port, its state in a temporary folder.

mod collector;
mod dead_letters;
mod errors;
mod events;
mod harness;
mod hostile;
mod keys;
mod openapi;
mod operations;
mod python;
mod runs;
mod schedules;
mod schemathesis;
mod socket;
mod tasks;
mod traces;
mod workers;
