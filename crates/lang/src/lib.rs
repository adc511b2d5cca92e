//! The workflow language: YAML or JSON text to a compiled program.
//!
//! - [`spec`]: a definition as its author wrote it
//! - [`Program`]: a compiled definition: the core's graph, and the action of each node
//! - [`template`], [`expr`]: `${{ … }}` and the CEL inside
//! - [`patch`]: changes to the graph of a running run
//! - [`schema`]: the JSON Schema for editors
//!
//! The stages of compilation: `source` (tree with places) → `decode` ([`spec::Definition`]) → [`bundle`] (child files)
//! → `compile` ([`Program`]). This crate never reads a file, a clock or the environment.

mod bundle;
mod compile;
mod decode;
pub mod expr;
mod input;
pub mod limits;
pub mod patch;
mod problem;
pub mod program;
pub mod schema;
mod source;
pub mod spec;
pub mod template;

pub use bundle::{Loader, bundle};
pub use decode::decode_value;
pub use expr::{Budget, Exceeded, Expr, ExprError, NodeView, Scope};
pub use program::{Body, CompiledKind, CompiledNode, Program};
pub use schema::json_schema;
pub use source::parse_value;
pub use spec::{Definition, NodeSpec};
pub use template::Template;
