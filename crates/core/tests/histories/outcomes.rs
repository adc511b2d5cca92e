//! The possible outcomes of a task. The differential test of the Redis store uses them too.

use std::time::Duration;

use proptest::prelude::*;
use switchyard_core::error::NodeError;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::*;
use switchyard_core::{ApprovalId, Payload, RunId, Timestamp};

#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Succeed(u8),
    Fail,
    FailForGood,
    Skip,
    Sleep,
    Ask,
    Await,
    Spawn(u8),
    HandBack,
    Cancelled,
}

pub(crate) fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        8 => any::<u8>().prop_map(How::Succeed),
        2 => Just(How::Fail),
        1 => Just(How::FailForGood),
        1 => Just(How::Skip),
        1 => Just(How::Sleep),
        1 => Just(How::Ask),
        1 => Just(How::Await),
        1 => (0u8..4).prop_map(How::Spawn),
        2 => Just(How::HandBack),
        1 => Just(How::Cancelled),
    ]
}

impl How {
    /// The outcome to settle with. `counter` makes names unique.
    pub(crate) fn outcome(self, now: Timestamp, counter: &mut u64) -> TaskOutcome {
        let later = now.plus(Duration::from_secs(20));
        let mut fresh = || {
            *counter += 1;
            *counter
        };
        match self {
            Self::Succeed(n) => TaskOutcome::Succeeded(Payload::from_value(&serde_json::json!({"n": n}))),
            Self::Fail => TaskOutcome::Failed(NodeError::retryable("oops", "it failed")),
            Self::FailForGood => TaskOutcome::Failed(NodeError::permanent("oops", "it \"failed\"")),
            Self::Skip => TaskOutcome::Skipped(SkipReason::Condition),
            Self::Sleep => TaskOutcome::Waiting(WaitFor::Timer { until: later }),
            Self::Ask => {
                let number = fresh();
                TaskOutcome::Waiting(WaitFor::Approval(Box::new(ApprovalRequest {
                    approval: ApprovalId::new(format!("appr_{number}")),
                    approver: None,
                    prompt: None,
                    payload: Payload::null(),
                    timeout_at: number.is_multiple_of(2).then_some(later),
                    on_timeout: ApprovalTimeout::Reject,
                })))
            }
            Self::Await => TaskOutcome::Waiting(WaitFor::Signal {
                name: "go".into(),
                timeout_at: fresh().is_multiple_of(2).then_some(later),
                on_timeout: SignalTimeout::Continue,
            }),
            Self::Spawn(children) => {
                let number = fresh();
                let mut child = || ChildSpec::plain(RunId::new(now, fresh(), 0), Payload::null());
                TaskOutcome::Waiting(WaitFor::Children(Box::new(ChildrenPlan {
                    workflow: "child".into(),
                    children: (0..children).map(|_| child()).collect(),
                    definition: Sketch::chain(2).ir().hash,
                    concurrency: 2,
                    stop_on_failure: number.is_multiple_of(2),
                    timeout_at: number.is_multiple_of(3).then_some(later),
                })))
            }
            Self::HandBack => TaskOutcome::HandedBack,
            Self::Cancelled => TaskOutcome::Cancelled,
        }
    }
}
