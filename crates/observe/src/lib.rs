//! What is counted, measured and traced about runs.
//!
//! - [`Observe`]: handed through constructors to the parts that report; cloning it is cheap
//! - [`Metrics`]: counters, gauges and histograms, and the page that Prometheus reads; [`METRICS`] is the list of them
//! - [`trace`]: spans of runs and steps, made from events, and their export (OTLP)
//!
//! Most of it is read from events as they are journalled: that is where everything that happens to a run passes, in
//! order, in whichever process it was executed. This crate never decides anything, and nothing that it does can fail a run.

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
