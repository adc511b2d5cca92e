//! Random identifiers; the core itself uses no randomness.

use std::time::Duration;

use switchyard_core::{ApprovalId, OperationId, PatchId, RunId, Timestamp};
use switchyard_store::OPERATIONS_KEPT;

/// A new run id in a partition: that of the run's parent, or the first one.
pub fn run_id(now: Timestamp, partition: u16) -> RunId {
    RunId::new(now, rand::random(), partition)
}

/// An operation id for a command whose caller sent none.
pub fn operation_id() -> OperationId {
    OperationId::drawn(rand::random())
}

pub fn approval_id() -> ApprovalId {
    ApprovalId::new(format!("appr_{:016x}", rand::random::<u64>()))
}

pub fn patch_id() -> PatchId {
    PatchId::new(format!("patch_{:016x}", rand::random::<u64>()))
}

/// The operation id of a submission without a caller's key: the run's own id, so no second id is stored.
const SUBMISSION: &str = "submit_";

/// How far the clock of another server may be ahead.
const SKEW_MAX: Duration = Duration::from_secs(300);

/// The operation id of a submission that came without a key.
pub fn submission_id(run: RunId) -> Option<OperationId> {
    let run = run.to_string();
    OperationId::new(format!("{SUBMISSION}{}", run.strip_prefix("run_")?)).ok()
}

/// The run of a submission id. `None` if no server can have drawn the id lately: then it is an ordinary key.
pub fn submitted_run(key: &str, now: Timestamp) -> Option<RunId> {
    let run: RunId = format!("run_{}", key.strip_prefix(SUBMISSION)?).parse().ok()?;
    let drawn_lately = run.at() >= now.minus(OPERATIONS_KEPT) && run.at() <= now.plus(SKEW_MAX);
    (drawn_lately && run.partition() == 0).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_is_called_after_its_run_for_a_day() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let run = run_id(now, 0);
        let id = submission_id(run).unwrap();
        assert_eq!(submitted_run(id.as_str(), now), Some(run));
        assert_eq!(submitted_run(id.as_str(), now.plus(2 * OPERATIONS_KEPT)), None);
        assert_eq!(submitted_run(id.as_str(), now.minus(OPERATIONS_KEPT)), None, "it is from the future");
        for key in ["submit_", "submit_1", &run.to_string(), "order 7"] {
            assert_eq!(submitted_run(key, now), None, "{key}");
        }
    }
}
