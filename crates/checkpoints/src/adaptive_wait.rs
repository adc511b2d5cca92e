//! Decides whether to poll for an answer or to sleep until it arrives.
//!
//! To fall asleep and be woken may take longer than a server on the same machine takes to answer; or not, if the two
//! share a processor. Which is better depends on the machine's load and changes. So both ways are measured all the
//! time: most waits use the way that was faster lately, and every [`PROBE`]th the other one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time to poll before sleeping.
const MOMENT: Duration = Duration::from_micros(200);
/// Number of latencies that are kept for each way.
const LATEST: usize = 8;
/// Number of first answers for which the two ways alternate.
const TRIALS: u32 = 2 * LATEST as u32;
/// Odd, so that two kinds of calls that alternate are both probed.
const PROBE: u32 = 31;

/// Set while one thread polls; all others sleep. In a child that was forked meanwhile it stays set, so that child
/// never polls, which does no harm.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// With a single processor the server could not run while this thread polls.
static HAS_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// The waiting strategy of one connection.
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

/// The usual latency in nanoseconds: the mean of the middle half of the latest ones. So calls of several kinds all
/// count, and a single late answer does not.
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
    /// Called before a request is sent. Returns whether to poll for the answer.
    pub fn begin(&mut self) -> bool {
        self.sleep();
        let is_awake = self.is_awake_next() && *HAS_PROCESSORS && !IS_TAKEN.swap(true, Ordering::Acquire);
        self.waiting = Some(Waiting { since: Instant::now(), began_awake: is_awake, is_awake });
        is_awake
    }

    /// Whether the polling time is over; from then on the connection sleeps.
    pub fn is_over(&mut self) -> bool {
        let is_over = self.waiting.as_ref().is_none_or(|waiting| waiting.since.elapsed() >= MOMENT);
        if is_over {
            self.sleep();
        }
        is_over
    }

    /// Stops polling.
    pub fn sleep(&mut self) {
        if let Some(waiting) = &mut self.waiting
            && std::mem::take(&mut waiting.is_awake)
        {
            IS_TAKEN.store(false, Ordering::Release);
        }
    }

    /// Called when the answer has arrived; records its latency.
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

    /// Whether to poll for the next answer. Polling must save at least a tenth.
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

    /// How many of a thousand answers are polled for, with these latencies of the two ways.
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
        // The processor is free again.
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
