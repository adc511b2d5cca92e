//! What a server bears with.

use std::time::Duration;

/// Set once, for all requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest body, in bytes.
    pub body_bytes_max: usize,
    /// How long a request's headers may take: a client that sends them byte by byte is cut off.
    pub headers_wait_max: Duration,
    /// The same for its body.
    pub body_wait_max: Duration,
    /// How long a request may take; one that waits for work, that much longer than its wait.
    pub request_max: Duration,
    /// How often a stream says that there is nothing new.
    pub heartbeat_every: Duration,
    /// How long requests under way may take to end once the server stops.
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
