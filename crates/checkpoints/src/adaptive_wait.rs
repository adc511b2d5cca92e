//! Whether to poll for an answer or to sleep until it is there.
//!
//! To be put to sleep and woken may take longer than a server on the same machine takes to answer; or not, if the two share
//! a processor. Which is better depends on the machine's load and changes. So both ways are measured all
//! the time: most answers are waited for in the way that was faster lately, and every [`PROBE`]th in the other one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long to stay awake at most.
const MOMENT: Duration = Duration::from_micros(200);
/// So many answers of each way are remembered.
const LATEST: usize = 8;
/// So many are waited for in turns at first.
const TRIALS: u32 = 2 * LATEST as u32;
/// Odd, so that calls of two kinds that take turns are both looked at.
const PROBE: u32 = 31;

/// One at a time keeps a processor busy with waiting; the others sleep. A child that was forked meanwhile never does: no harm.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// With a single processor the server could not run meanwhile.
static HAS_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// How one connection waits.
#[derive(Debug, Default)]
pub struct AdaptiveWait {
    awake: Usual,
    asleep: Usual,
    answers: u32,
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    began_awake: bool,
    is_awake: bool,
}

/// The usual latency, in nanoseconds: the mean of the middle half of the latest. Calls of several kinds all count, and an answer
/// that came late because of something else does not.
#[derive(Debug, Default)]
struct Usual {
    latest: [u64; LATEST],
    noted: usize,
    nanos: u64,
}

impl Usual {
    fn note(&mut self, nanos: u64) {
        self.latest[self.noted % LATEST] = nanos;
        self.noted += 1;
        let mut sorted = self.latest;
        let sorted = &mut sorted[..self.noted.min(LATEST)];
        sorted.sort_unstable();
        let middle = &sorted[sorted.len() / 4..sorted.len() - sorted.len() / 4];
        self.nanos = middle.iter().sum::<u64>() / middle.len() as u64;
    }
}

impl AdaptiveWait {
    /// Is about to send something, and to wait for the answer; whether awake.
    pub fn begin(&mut self) -> bool {
        self.sleep();
        let is_awake = self.is_awake_next() && *HAS_PROCESSORS && !IS_TAKEN.swap(true, Ordering::Acquire);
        self.waiting = Some(Waiting { since: Instant::now(), began_awake: is_awake, is_awake });
        is_awake
    }

    /// Whether it has stayed awake long enough, and sleeps from now on.
    pub fn is_over(&mut self) -> bool {
        let is_over = self.waiting.as_ref().is_none_or(|waiting| waiting.since.elapsed() >= MOMENT);
        if is_over {
            self.sleep();
        }
        is_over
    }

    /// Does not stay awake any longer.
    pub fn sleep(&mut self) {
        if let Some(waiting) = &mut self.waiting
            && std::mem::take(&mut waiting.is_awake)
        {
            IS_TAKEN.store(false, Ordering::Release);
        }
    }

    /// The answer has come.
    pub fn end(&mut self) {
        self.sleep();
        if let Some(Waiting { since, began_awake, .. }) = self.waiting.take() {
            let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if began_awake {
                self.awake.note(nanos)
            } else {
                self.asleep.note(nanos)
            }
            self.answers = self.answers.wrapping_add(1);
        }
    }

    /// To stay awake must save at least a tenth.
    fn is_awake_next(&self) -> bool {
        if self.answers < TRIALS {
            return self.answers.is_multiple_of(2);
        }
        let is_faster = self.awake.nanos < self.asleep.nanos - self.asleep.nanos / 10;
        is_faster != self.answers.is_multiple_of(PROBE)
    }
}

impl Drop for AdaptiveWait {
    fn drop(&mut self) {
        self.sleep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a thousand answers are waited for awake, if they take that long in one way and in the other.
    fn watched(adaptive_wait: &mut AdaptiveWait, awake_nanos: u64, asleep_nanos: u64) -> usize {
        (0..1_000)
            .filter(|number| {
                let is_awake = adaptive_wait.is_awake_next();
                let nanos = if is_awake { awake_nanos } else { asleep_nanos };
                let late = if number % 10 == 0 { 5_000_000 } else { 0 };
                if is_awake {
                    adaptive_wait.awake.note(nanos + late)
                } else {
                    adaptive_wait.asleep.note(nanos + late)
                }
                adaptive_wait.answers += 1;
                is_awake
            })
            .count()
    }

    #[test]
    fn the_faster_way_is_the_usual_one_and_the_other_is_tried_now_and_then() {
        let mut adaptive_wait = AdaptiveWait::default();
        let near = watched(&mut adaptive_wait, 30_000, 70_000);
        assert!((900..1_000).contains(&near), "{near}");
        // Another thread needs the processor now.
        watched(&mut adaptive_wait, 250_000, 90_000);
        let crowded = watched(&mut adaptive_wait, 250_000, 90_000);
        assert!((1..100).contains(&crowded), "{crowded}");
        // Not any more.
        watched(&mut adaptive_wait, 30_000, 70_000);
        let again = watched(&mut adaptive_wait, 30_000, 70_000);
        assert!((900..1_000).contains(&again), "{again}");
    }

    #[test]
    fn what_is_as_fast_asleep_is_slept_through() {
        let far = watched(&mut AdaptiveWait::default(), 500_000, 500_000);
        assert!((1..100).contains(&far), "{far}");
    }
}
