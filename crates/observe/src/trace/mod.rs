//! Spans of runs and steps, and their export.

mod context;
mod encode;
mod export;
mod span;
mod spans;

pub use context::{Headers, incoming};
pub use export::{Collector, Exporter};
pub use span::Span;
pub use spans::Spans;
