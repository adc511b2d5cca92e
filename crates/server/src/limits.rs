//! Limits on requests and connections.

use std::time::Duration;

/// Limits on requests and connections, the same for all of them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest body, in bytes.
    pub body_bytes_max: usize,
    /// How long a request's headers may take: a client that sends them byte by byte is cut off.
    pub headers_wait_max: Duration,
    /// How long a request's body may take to arrive.
    pub body_wait_max: Duration,
    /// How long a request may take. A claim of tasks may take this long in addition to the longest wait for work.
    pub request_max: Duration,
    /// How often an idle stream sends a heartbeat.
    pub heartbeat_every: Duration,
    /// How long the server waits for requests in progress when it stops.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 16 * 1024 * 1024,
            headers_wait_max: Duration::from_secs(15),
            body_wait_max: Duration::from_secs(30),
            request_max: Duration::from_secs(60),
            heartbeat_every: Duration::from_secs(15),
            grace: Duration::from_secs(10),
        }
    }
}
