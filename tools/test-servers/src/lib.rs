//! Real servers for tests: private, on free ports, in temporary folders, ended with the process that started them.

pub mod certificates;
pub mod postgres;
pub mod proxy;
pub mod redis;
pub mod sentinel;

/// A port that is free at the moment.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port()
}
