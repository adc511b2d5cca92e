//! Metrics, logs and traces of runs.
//!
//! - [`Observe`]: handed through constructors to the parts that report; cloning it is cheap
//! - [`Metrics`]: counters, gauges and histograms, and the page that Prometheus reads; [`METRICS`] is the list of them
//! - [`trace`]: spans of runs and steps, made from events, and their export (OTLP)
//!
//! Most of it is derived from events as they are journalled: the journal has every event of a run, in order, no matter
//! which process executed it. This crate never decides anything, and no failure in it can fail a run.

mod about;
mod commit;
mod log;
mod maybe;
mod metrics;
mod observe;
mod once;
pub mod trace;
mod workflows;

pub use about::{About, METRICS, reference};
pub use commit::Commit;
pub use metrics::{Behind, Gauges, Metrics};
pub use observe::Observe;
pub use once::Once;
