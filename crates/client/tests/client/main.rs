//! The client against a real server, through connections that break.

mod calls;
mod events;
mod harness;
mod refusals;
mod repeating;
mod tasks;
