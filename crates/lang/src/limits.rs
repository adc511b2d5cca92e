//! Limits of definitions. Each limit is checked before the work that it bounds.

use std::time::Duration;

/// The largest definition text, in bytes.
pub const DEFINITION_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How deep maps and lists may nest.
pub const NESTING_MAX: usize = 64;

/// How many values a text may have after its aliases are expanded.
pub const VALUES_MAX: usize = 2_000_000;

/// The most nodes of one workflow, without those of its children.
pub const NODES_MAX: usize = 100_000;

/// The most needs of one node.
pub const NEEDS_MAX: usize = 100_000;

/// The most edges of one workflow.
pub const EDGES_MAX: usize = 1_000_000;

/// How deep child workflows may be written inside each other.
pub const BODY_DEPTH_MAX: usize = 8;

/// The longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 8 * 1024;

/// How deep an expression may nest. The evaluator recurses once a level, on the worker's stack.
pub const EXPRESSION_DEPTH_MAX: usize = 32;

/// The most steps of one evaluation: of an expression, or of a template with all the expressions in it.
pub const EVALUATION_STEPS_MAX: u64 = 10_000_000;

/// Bytes that one evaluation may make, intermediate values included.
pub const EVALUATION_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// How long one evaluation may take, on a machine that is too busy for its steps.
pub const EVALUATION_TIME_MAX: Duration = Duration::from_secs(5);

/// How many problems of one definition are reported.
pub const PROBLEMS_MAX: usize = 100;

/// Iterations of a `loop`: the default, and the most.
pub const LOOP_ITERATIONS_DEFAULT: u32 = 100;
pub const LOOP_ITERATIONS_MAX: u32 = 10_000;

/// The longest name of a workflow, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The longest id of a node, in bytes.
pub const NODE_ID_BYTES_MAX: usize = 64;

/// The most sinks whose outputs make up the output of a run without an `output`; with more sinks it is null.
pub const IMPLIED_OUTPUTS_MAX: usize = 1_000;
