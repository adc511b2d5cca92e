//! The pure core of Switchyard: the state of a run, and every rule that changes it.
//!
//! Nothing here performs I/O, reads a clock, awaits, or draws a random number. Callers pass time and ids as arguments,
//! and the core returns effects on the outside as data ([`run::Effect`]).
//!
//! - [`ir`]: the compiled form of a workflow
//! - [`run`]: one run: events, the transition table, commands
//! - [`in_flight`]: many runs with their queues, timers, leases and concurrency keys
//! - [`labels`]: words to find a run by
//! - [`retry`]: when a failed attempt is repeated
//! - [`schedule`]: when Switchyard starts a workflow by itself
//! - [`trace`]: the place of a run in a distributed trace

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
