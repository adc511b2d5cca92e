//! Conformance suites for the backends of each seam: one suite for each seam, one file for each group of checks.
//!
//! A backend implements the suite's `Backend` and calls its macro, which makes one test of each group. Checks are
//! private and called by `all` of their group, so a check that `all` forgets is a compiler warning.

pub mod archive;
pub mod hot_store;
