//! Time-outs of attempts.

use std::time::Duration;

use super::*;
use crate::NodeError;

impl Run {
    /// Fails the attempt of a claim whose limit has passed, with code `timeout`; the retry policy decides about
    /// another. Returns whether the claim was still valid.
    pub fn time_out(
        &mut self,
        ix: NodeIx,
        claim: u32,
        limit: Duration,
        now: Timestamp,
        out: &mut Changes,
    ) -> bool {
        if self.standing(ix, claim) != Settled::Applied {
            return false;
        }
        let error = NodeError::retryable("timeout", format!("it did not end within {limit:?}"));
        self.fail_or_retry(ix, error, now, out);
        self.conclude(now, out);
        true
    }
}
