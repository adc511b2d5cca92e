//! Small types that the language, the settings, the API and its clients share.
//!
//! - [`HumanDuration`]: `500ms`, `30s`, `1h30m`
//! - [`Diagnostics`]: the problems of a text, each with position and hint
//! - [`suggest`]: "did you mean"
//! - [`PatchOp`]: a change to the graph of a run, as clients send it
//!
//! This crate never compiles or evaluates anything, and has only small dependencies, because clients link it.

mod diagnostic;
mod duration;
mod patch;
pub mod suggest;

pub use diagnostic::{Diagnostic, Diagnostics, Position};
pub use duration::{BadDuration, DURATION_MAX, DURATION_PATTERN, HumanDuration};
pub use patch::PatchOp;
