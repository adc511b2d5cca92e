//! Retries of requests.

use std::time::Duration;

/// The first pause between two tries; each is twice the one before, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Whether a request may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The request reads only, or the server carries it out once however often it is sent.
    Harmless,
    /// Sending it twice would have a second effect: it is repeated only if the server has certainly done nothing.
    Harmful,
}

/// Exponential back-off with jitter, so that many clients do not reconnect at the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: PAUSE_MIN }
    }
}

impl Backoff {
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (2 * pause).min(PAUSE_MAX);
        pause.mul_f64(rand::random_range(0.5..=1.0))
    }
}
