//! `switchyard._core`: what the Python package leaves to Rust.
//!
//! - [`op`]: something to be done, made of Python objects while the interpreter is held
//! - [`core`]: doing it: now, with the interpreter let go; or on the runtime, with a future of the caller's event loop
//! - [`live`]: connections of this process; a forked child makes its own
//! - [`bridge`], [`loop_connection`]: how calls get out of an event loop, and results into it
//! - [`convert`], [`errors`]: to and from Python

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

    /// Whether it was built to be fast: what is measured with another build says nothing.
    #[pymodule_export]
    const IS_OPTIMIZED: bool = !cfg!(debug_assertions);
}
