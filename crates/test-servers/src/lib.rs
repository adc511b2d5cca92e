//! Real servers for tests: private, on free ports, in temporary folders, gone with the process that started them.

pub mod postgres;
pub mod redis;
