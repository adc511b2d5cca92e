//! The injected clock, the only source of time for runs. The duration of one execution is measured by the machine
//! that executes it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use switchyard_core::Timestamp;
use tokio::sync::watch;

#[async_trait]
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    fn now(&self) -> Timestamp;

    /// Returns once `now() >= until`.
    async fn sleep_until(&self, until: Timestamp);

    /// Returns after `length`, even if the clock is set meanwhile. For repetition and retries, which must not stop
    /// when the clock is set back.
    async fn sleep(&self, length: Duration);
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep_until(&self, until: Timestamp) {
        sleep_in_pieces(|| self.now(), until).await;
    }

    async fn sleep(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }
}

/// How often a sleeper checks the clock, which can be set while it sleeps. After a wrong clock is corrected, a
/// sleeper wakes at most this much late.
const PIECE: Duration = Duration::from_secs(1);

async fn sleep_in_pieces(now: impl Fn() -> Timestamp, until: Timestamp) {
    loop {
        let left = until.since(now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(PIECE)).await;
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Clone)]
pub struct ManualClock {
    hands: Arc<watch::Sender<Hands>>,
}

/// The current time of a manual clock.
#[derive(Debug, Clone, Copy)]
struct Hands {
    now: Timestamp,
    /// The time that has passed since the clock was created, regardless of how often it was set.
    passed: Duration,
}

impl ManualClock {
    pub fn starting_at(now: Timestamp) -> Self {
        Self { hands: Arc::new(watch::Sender::new(Hands { now, passed: Duration::ZERO })) }
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.hands.send_modify(|hands| {
            hands.now = hands.now.plus(by);
            hands.passed += by;
        });
    }

    /// Sets the clock, as a person or a time server does: no time passes.
    pub fn set(&self, now: Timestamp) {
        self.hands.send_modify(|hands| hands.now = now);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.hands.borrow().now
    }

    async fn sleep_until(&self, until: Timestamp) {
        let mut hands = self.hands.subscribe();
        // The sender lives in `self`, so the channel cannot close under us.
        let _ = hands.wait_for(|hands| hands.now >= until).await;
    }

    async fn sleep(&self, length: Duration) {
        let mut hands = self.hands.subscribe();
        let over = hands.borrow().passed.saturating_add(length);
        let _ = hands.wait_for(|hands| hands.passed >= over).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Uses tokio's paused time, which advances by itself.
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_wrong_for_a_while_delays_by_no_more_than_that() {
        let (began, epoch) = (Instant::now(), Timestamp::from_millis(1_700_000_000_000));
        // The clock is an hour behind for the first ten seconds.
        let now = move || {
            let passed = began.elapsed();
            let right = epoch.plus(passed);
            if passed < seconds(10) { right.minus(HOUR) } else { right }
        };
        sleep_in_pieces(now, epoch.plus(seconds(5))).await;
        assert!(began.elapsed() <= seconds(10) + PIECE, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_forth_ends_the_sleep() {
        let (began, epoch) = (Instant::now(), Timestamp::from_millis(1_700_000_000_000));
        let now = move || {
            let passed = began.elapsed();
            epoch.plus(if passed < seconds(3) { passed } else { passed + HOUR })
        };
        sleep_in_pieces(now, epoch.plus(HOUR)).await;
        assert!(began.elapsed() <= seconds(3) + PIECE, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_manual_clock_that_is_set_lets_no_time_pass() {
        let clock = ManualClock::starting_at(Timestamp::from_millis(10_000));
        let slept = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(seconds(5)).await }
        });
        tokio::task::yield_now().await;
        clock.set(Timestamp::from_millis(1_000_000));
        tokio::task::yield_now().await;
        assert!(!slept.is_finished());
        clock.set(Timestamp::from_millis(1));
        clock.advance(seconds(5));
        slept.await.unwrap();
        assert_eq!(clock.now(), Timestamp::from_millis(5_001));
    }
}
