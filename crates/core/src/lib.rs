//! The pure core of Switchyard: what a run is, and every rule of how it moves.
//!
//! Nothing here performs I/O, reads a clock, awaits, or draws a random number. Time comes in as an argument,
//! ids come in as arguments, and what has to happen outside comes out as data ([`run::Effect`]).
//!
//! - [`ir`]: the compiled form of a workflow
//! - [`run`]: one run: events, the transition table, commands
//! - [`in_flight`]: many runs with their queues, timers, leases and concurrency keys
//! - [`labels`]: words to find a run by
//! - [`retry`]: when to try again
//! - [`schedule`]: when to start by itself
//! - [`trace`]: where a run belongs in a distributed trace

pub mod error;
pub mod ids;
pub mod in_flight;
pub mod ir;
pub mod labels;
pub mod payload;
pub mod retry;
pub mod run;
pub mod schedule;
pub mod time;
pub mod trace;

pub use error::NodeError;
pub use ids::{ApprovalId, Hash, OperationId, PatchId, RunId};
pub use labels::Labels;
pub use payload::{CasRef, Payload};
pub use time::Timestamp;
pub use trace::{SpanId, TraceId, TraceLink};
