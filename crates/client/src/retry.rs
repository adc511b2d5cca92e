//! When a request is made again.

use std::time::Duration;

/// The first pause between two tries; each is twice the one before, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What making a request twice would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Nothing more than making it once: it asks, or its id makes the server carry it out once.
    Harmless,
    /// Something else: it is repeated only where nothing can have happened.
    Harmful,
}

/// Pauses that grow, with a part left to chance so that many clients do not come back together.
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
