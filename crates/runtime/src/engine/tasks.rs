//! Tasks of workers outside this process, and the passes of the duties that take tasks back and fire timers.

use std::time::Duration;

use switchyard_core::Timestamp;
use switchyard_core::in_flight::{ClaimStatus, Want};
use switchyard_core::ir::queue_name;
use switchyard_core::run::{ClaimRef, Progress, Settled, Settlement, Task};

use super::{Engine, EngineError};

impl Engine {
    /// Settles claims, releases the nodes that depended on them, and claims the next tasks. The answers are in the
    /// order of the settlements.
    pub async fn step(
        &self,
        settlements: Vec<Settlement>,
        want: &Want,
    ) -> Result<(Vec<Settled>, Vec<Task>), EngineError> {
        Ok(self.hot.step(settlements, want).await?)
    }

    /// Returns when there may be something to claim; early is allowed, late is not.
    pub async fn work_ready(&self, want: &Want) {
        self.hot.work_ready(want).await;
    }

    /// Whether plain workers serve a function: other workers cannot claim it by its name.
    pub fn is_plain(&self, function: &str) -> bool {
        self.hot.is_plain(&queue_name::of_function(function))
    }

    /// The task of a claim, if the claim is valid at this moment.
    pub async fn held_task(&self, claim: &ClaimRef) -> Result<Option<Task>, EngineError> {
        // Leases and limits apply at this moment, not at the next pass of the duty.
        self.hot.reclaim().await?;
        Ok(self.hot.held_task(claim).await?)
    }

    /// Extends the lease of a claim, and reports whether it is still valid.
    pub async fn heartbeat(&self, claim: &ClaimRef, lease: Duration) -> Result<ClaimStatus, EngineError> {
        self.note_heartbeat(claim).await?;
        self.claim_status(claim, Some(lease)).await
    }

    /// Records a checkpoint or partial output from the holder of a claim. Returns the status of the claim; an invalid
    /// claim is lost, and changes nothing.
    pub async fn progress(&self, claim: &ClaimRef, progress: Progress) -> Result<ClaimStatus, EngineError> {
        if self.hot.progress(claim, progress).await? != Settled::Applied {
            return Ok(ClaimStatus::Lost);
        }
        // The claim was valid a moment ago, when the progress was stored.
        match self.claim_status(claim, None).await? {
            ClaimStatus::Stop => Ok(ClaimStatus::Stop),
            ClaimStatus::Held | ClaimStatus::Lost => Ok(ClaimStatus::Held),
        }
    }

    async fn claim_status(
        &self,
        claim: &ClaimRef,
        lease: Option<Duration>,
    ) -> Result<ClaimStatus, EngineError> {
        let answers = self.hot.heartbeat(std::slice::from_ref(claim), lease).await?;
        Ok(answers.into_iter().next().unwrap_or(ClaimStatus::Lost))
    }

    /// One pass of the reclaim duty: takes back claims whose lease ran out, and fails attempts that exceeded their
    /// time limit. Returns the number of both together.
    pub async fn reclaim(&self) -> Result<usize, EngineError> {
        Ok(self.hot.reclaim().await?)
    }

    /// One pass of the timer duty: fires the timers that are due. Returns how many fired, and when the next is due.
    pub async fn fire_timers(&self) -> Result<(usize, Option<Timestamp>), EngineError> {
        Ok(self.hot.fire_timers().await?)
    }
}
