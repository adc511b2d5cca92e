//! Whether to keep awake for an answer.
//!
//! To be put to sleep and woken takes longer than a server on the same machine takes to answer. So a caller may stay awake
//! for a moment, if answers have come within it lately. It gives the habit up where they do not, and looks again now and
//! then.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long to stay awake at most.
const MOMENT: Duration = Duration::from_micros(200);
const CREDIT_MAX: u8 = 8;
/// What an answer costs that did not come within the moment.
const MISS_COST: u8 = 2;
/// After this many answers that were slept through, one is watched for again.
const PAUSE: u16 = 256;

/// One at a time keeps a processor busy with waiting; the others sleep. A child that was forked meanwhile never does: no harm.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// With a single processor the server could not run meanwhile.
static HAS_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// The habit of one connection.
#[derive(Debug)]
pub struct Vigil {
    credit: u8,
    slept: u16,
    until: Option<Instant>,
}

impl Default for Vigil {
    fn default() -> Self {
        Self { credit: CREDIT_MAX, slept: 0, until: None }
    }
}

impl Vigil {
    /// Begins to wait for an answer; whether awake.
    pub fn begin(&mut self) -> bool {
        if self.until.is_some() {
            return true;
        }
        if !self.is_worth_it() || !*HAS_PROCESSORS || IS_TAKEN.swap(true, Ordering::Acquire) {
            return false;
        }
        self.until = Some(Instant::now() + MOMENT);
        true
    }

    /// Whether the moment is over.
    pub fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Stops waiting awake, if it did: with an answer, or without.
    pub fn end(&mut self, is_answered: bool) {
        if self.until.take().is_none() {
            return;
        }
        IS_TAKEN.store(false, Ordering::Release);
        self.credit = match is_answered {
            true => (self.credit + 1).min(CREDIT_MAX),
            false => self.credit.saturating_sub(MISS_COST),
        };
    }

    fn is_worth_it(&mut self) -> bool {
        if self.credit > 0 {
            return true;
        }
        self.slept += 1;
        if self.slept < PAUSE {
            return false;
        }
        self.slept = 0;
        true
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        self.end(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_habit_that_does_not_pay_is_given_up_and_tried_again() {
        let mut vigil = Vigil::default();
        let misses = (0..100).take_while(|_| {
            let is_worth_it = vigil.is_worth_it();
            vigil.until = is_worth_it.then(Instant::now);
            vigil.end(false);
            is_worth_it
        });
        assert_eq!(misses.count(), usize::from(CREDIT_MAX / MISS_COST));
        let tried = (0..2 * usize::from(PAUSE)).filter(|_| vigil.is_worth_it()).count();
        assert_eq!(tried, 2);
        vigil.until = Some(Instant::now());
        vigil.end(true);
        assert!(vigil.is_worth_it());
    }
}
