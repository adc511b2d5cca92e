//! Small things that the language, the settings, the API and its clients share.
//!
//! - [`HumanDuration`]: `500ms`, `30s`, `1h30m`
//! - [`Diagnostics`]: what is wrong with a text, where, and what to do about it
//! - [`suggest`]: "did you mean"
//! - [`PatchOp`]: a change to the graph of a run, as it is sent
//!
//! This crate never compiles or evaluates anything, and has no dependency that a small client would mind.

mod diagnostic;
mod duration;
mod patch;
pub mod suggest;

pub use diagnostic::{Diagnostic, Diagnostics, Position};
pub use duration::{BadDuration, DURATION_MAX, DURATION_PATTERN, HumanDuration};
pub use patch::PatchOp;
