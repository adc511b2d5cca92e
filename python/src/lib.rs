//! `switchyard._core`: the part of the Python package that is written in Rust.
//!
//! - [`op`]: an operation, built from Python objects while the interpreter is held
//! - [`core`]: executes an operation: on the calling thread, or for a future of an event loop
//! - [`live`]: connections of this process; a forked child makes its own
//! - [`bridge`], [`loop_connection`]: move calls out of an event loop, and results back into it
//! - [`convert`], [`errors`]: conversions to and from Python

mod bridge;
mod convert;
mod core;
mod errors;
mod live;
mod loop_connection;
mod op;

#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::bridge::Bridge;
    #[pymodule_export]
    use crate::core::Core;
    #[pymodule_export]
    use crate::op::Op;

    /// Whether this is an optimized build: measurements of another build are meaningless.
    #[pymodule_export]
    const IS_OPTIMIZED: bool = !cfg!(debug_assertions);
}
