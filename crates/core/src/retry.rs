//! Retry policies. Pure: the jitter is a function of run, node and attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::Hash;
use crate::{NodeError, RunId};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    #[default]
    Exponential,
    Linear,
    Fixed,
}

/// How often a node is tried, with which delays, and which errors are not retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    pub max_attempts: u32,
    pub backoff: Backoff,
    pub initial: Duration,
    pub max: Duration,
    /// Spread the delay over its upper half, so that many failed attempts are not repeated at the same moment.
    pub jitter: bool,
    /// Error codes that end the node at once.
    pub non_retryable: Vec<Box<str>>,
}

impl RetryPolicy {
    pub fn none() -> Self {
        Self {
            max_attempts: 1,
            backoff: Backoff::Fixed,
            initial: Duration::ZERO,
            max: Duration::ZERO,
            jitter: false,
            non_retryable: Vec::new(),
        }
    }

    /// The delay before the next attempt, or `None` if `attempt` (counted from 1) was the last. If the error asks for a
    /// longer delay than the policy, the error's delay counts.
    pub fn next_delay(&self, run: RunId, node: &str, attempt: u32, error: &NodeError) -> Option<Duration> {
        let hopeless = !error.retryable || self.non_retryable.iter().any(|code| **code == *error.code);
        if hopeless || attempt >= self.max_attempts {
            return None;
        }
        let base = self.base_delay(attempt);
        let delay = if self.jitter { spread(base, run, node, attempt) } else { base };
        Some(delay.max(error.retry_after.unwrap_or_default()))
    }

    fn base_delay(&self, attempt: u32) -> Duration {
        let factor = match self.backoff {
            Backoff::Exponential => 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX),
            Backoff::Linear => attempt,
            Backoff::Fixed => 1,
        };
        self.initial.saturating_mul(factor).min(self.max)
    }
}

/// A delay in `base/2 ..= base`, always the same for the same attempt, so that a rebuilt run computes the same delay.
fn spread(base: Duration, run: RunId, node: &str, attempt: u32) -> Duration {
    let digest = Hash::of(format!("{run}/{node}/{attempt}").as_bytes());
    let share = u32::from(u16::from_be_bytes([digest.0[0], digest.0[1]]));
    base / 2 + (base / 2) * share / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn policy(backoff: Backoff) -> RetryPolicy {
        RetryPolicy {
            max_attempts: 5,
            backoff,
            initial: Duration::from_millis(100),
            max: Duration::from_millis(350),
            jitter: false,
            non_retryable: vec!["bad_card".into()],
        }
    }

    fn run() -> RunId {
        RunId::new(Timestamp::from_millis(1), 1, 0)
    }

    fn delays(policy: &RetryPolicy) -> Vec<Option<u128>> {
        let error = NodeError::retryable("timeout", "too slow");
        (1..=5)
            .map(|attempt| policy.next_delay(run(), "n", attempt, &error).map(|delay| delay.as_millis()))
            .collect()
    }

    #[test]
    fn delays_grow_as_named_and_stop_at_the_maximum() {
        let exponential = delays(&policy(Backoff::Exponential));
        assert_eq!(exponential, [Some(100), Some(200), Some(350), Some(350), None]);
        assert_eq!(delays(&policy(Backoff::Linear)), [Some(100), Some(200), Some(300), Some(350), None]);
        assert_eq!(delays(&policy(Backoff::Fixed)), [Some(100), Some(100), Some(100), Some(100), None]);
    }

    #[test]
    fn hopeless_errors_are_not_retried() {
        let policy = policy(Backoff::Fixed);
        assert_eq!(policy.next_delay(run(), "n", 1, &NodeError::permanent("x", "y")), None);
        assert_eq!(policy.next_delay(run(), "n", 1, &NodeError::retryable("bad_card", "y")), None);
    }

    #[test]
    fn an_error_can_put_the_next_attempt_off_but_not_bring_it_forward() {
        let policy = policy(Backoff::Fixed);
        let delay = |attempt: u32, after_ms: u64| {
            let retry_after = Some(Duration::from_millis(after_ms));
            let error = NodeError { retry_after, ..NodeError::retryable("http_status", "503") };
            policy.next_delay(run(), "n", attempt, &error).map(|delay| delay.as_millis())
        };
        assert_eq!(delay(1, 60_000), Some(60_000));
        assert_eq!(delay(1, 1), Some(100));
        assert_eq!(delay(5, 60_000), None, "the attempt counts all the same");
    }

    #[test]
    fn jitter_stays_within_its_half_and_differs_between_attempts() {
        let policy = RetryPolicy {
            jitter: true,
            max_attempts: 100,
            max: Duration::from_secs(3600),
            initial: Duration::from_secs(8),
            ..policy(Backoff::Fixed)
        };
        let error = NodeError::retryable("timeout", "too slow");
        let delays: Vec<_> = (1..99).filter_map(|n| policy.next_delay(run(), "n", n, &error)).collect();
        assert!(delays.iter().all(|d| (4_000..=8_000).contains(&d.as_millis())));
        assert!(delays.iter().collect::<std::collections::BTreeSet<_>>().len() > 50);
        assert_eq!(policy.next_delay(run(), "n", 7, &error), policy.next_delay(run(), "n", 7, &error));
    }

    #[test]
    fn a_huge_attempt_number_does_not_overflow() {
        let policy = RetryPolicy { max_attempts: u32::MAX, ..policy(Backoff::Exponential) };
        let error = NodeError::retryable("timeout", "too slow");
        assert_eq!(policy.next_delay(run(), "n", 4_000_000_000, &error), Some(Duration::from_millis(350)));
    }
}
