//! Retention: removes runs that ended long ago, and payloads that no record mentions.

use switchyard_core::Hash;
use switchyard_store::RetentionPolicy;

use super::{Engine, EngineError};

/// How many runs one transaction removes: few, so that other writers do not wait long.
const RUNS_AT_ONCE: usize = 100;

/// How many payloads are checked together.
const PAYLOADS_AT_ONCE: usize = 500;

/// The numbers of runs and payloads that a retention pass removed. Child runs are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    pub runs: usize,
    pub payloads: usize,
}

impl Engine {
    /// One pass of the retention duty. Any number of processes may run it at once.
    pub async fn retain(&self, policy: &RetentionPolicy) -> Result<Retained, EngineError> {
        let runs = self.remove_runs(policy).await?;
        let payloads = self.remove_payloads(policy).await?;
        Ok(Retained { runs, payloads })
    }

    async fn remove_runs(&self, policy: &RetentionPolicy) -> Result<usize, EngineError> {
        let mut removed = 0;
        loop {
            let now = self.clock.now();
            let batch = self.archive.retain(policy, now, RUNS_AT_ONCE).await?;
            removed += batch;
            if batch < RUNS_AT_ONCE {
                return Ok(removed);
            }
        }
    }

    /// Removes payloads that are old enough and that the archive does not mention.
    async fn remove_payloads(&self, policy: &RetentionPolicy) -> Result<usize, EngineError> {
        let grace = policy.payload_grace;
        let mut removed = 0;
        let mut after: Option<Hash> = None;
        loop {
            let aged = self.payloads.cas().aged(grace, after, PAYLOADS_AT_ONCE).await?;
            let Some(last) = aged.last() else { return Ok(removed) };
            after = Some(*last);
            let since = self.clock.now().minus(grace);
            let held = self.archive.held_payloads(&aged, since).await?;
            for hash in aged.into_iter().filter(|hash| !held.contains(hash)) {
                removed += usize::from(self.payloads.cas().remove(hash, grace).await?);
            }
        }
    }
}
