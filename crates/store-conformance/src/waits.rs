//! Nodes that wait: for a moment, a person, a signal, runs of their own.

use std::time::Duration;

use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    ApprovalRequest, ApprovalTimeout, ChildSpec, ChildrenPlan, Decision, EndStatus, Refusal, RunStatus,
    SignalTimeout, TaskOutcome, WaitFor,
};
use switchyard_core::yard::Command;
use switchyard_core::{ApprovalId, Payload, RunId};
use switchyard_store::{Clock, StoreError};

use crate::place::failure;
use crate::{Backend, Place};

pub async fn all(backend: &dyn Backend) {
    a_timer_ends_a_sleep(&backend.open().await).await;
    a_clock_that_was_set_back_delays_by_no_more_than_it_was_wrong(&backend.open().await).await;
    an_approval_is_decided_once(&backend.open().await).await;
    an_approval_times_out_by_its_policy(&backend.open().await).await;
    a_signal_may_come_before_or_after(&backend.open().await).await;
    children_run_and_report(&backend.open().await).await;
    a_failed_child_stops_the_others(&backend.open().await).await;
    children_that_take_too_long_are_cancelled(&backend.open().await).await;
}

async fn pass_time(place: &Place, seconds: u64) {
    place.clock.advance(Duration::from_secs(seconds));
    place.hot.fire_timers().await.expect("timers fire");
}

async fn a_timer_ends_a_sleep(place: &Place) {
    let run = place.start(&Sketch::chain(2)).await;
    let task = place.claim_node("n0").await;
    let until = place.clock.now().plus(Duration::from_secs(60));
    place.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until })).await;
    assert_eq!(place.hot.fire_timers().await.expect("answered").1, Some(until));
    pass_time(place, 59).await;
    place.nothing_to_claim().await;
    pass_time(place, 1).await;
    place.pass("n1").await;
    place.ended(run, RunStatus::Succeeded).await;
}

async fn a_clock_that_was_set_back_delays_by_no_more_than_it_was_wrong(place: &Place) {
    let begin = place.clock.now();
    let at = |seconds| begin.plus(Duration::from_secs(seconds));
    let before = place.start(&Sketch::chain(1)).await;
    let task = place.claim_node("n0").await;
    place.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until: at(60) })).await;
    // An hour behind for half a minute, in which another timer is set.
    place.clock.set(begin.minus(Duration::from_secs(3600)));
    let meanwhile = place.start(&Sketch::chain(1)).await;
    let task = place.claim_node("n0").await;
    let until = place.clock.now().plus(Duration::from_secs(60));
    place.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until })).await;
    assert_eq!(place.hot.fire_timers().await.expect("answered"), (0, Some(until)));
    pass_time(place, 30).await;
    place.state(before).await;
    place.clock.set(at(30));
    // Set by the wrong clock, it is past by the right one.
    assert_eq!(place.hot.fire_timers().await.expect("answered"), (1, Some(at(60))));
    place.ended(meanwhile, RunStatus::Succeeded).await;
    pass_time(place, 29).await;
    place.state(before).await;
    pass_time(place, 1).await;
    place.ended(before, RunStatus::Succeeded).await;
}

async fn ask(place: &Place, id: &str, on_timeout: ApprovalTimeout) -> (RunId, ApprovalId) {
    let run = place.start(&Sketch::chain(2)).await;
    let task = place.claim_node("n0").await;
    let approval = ApprovalId::new(id);
    let request = ApprovalRequest {
        approval: approval.clone(),
        approver: Some("manager".into()),
        prompt: None,
        payload: Payload::null(),
        timeout_at: Some(place.clock.now().plus(Duration::from_secs(60))),
        on_timeout,
    };
    place.settle(&task, TaskOutcome::Waiting(WaitFor::Approval(Box::new(request)))).await;
    let state = place.state(run).await;
    assert_eq!((state.counter, state.approvals), (0, 1), "a person is not a token in flight");
    (run, approval)
}

fn decide(approval: &ApprovalId, decision: Decision) -> Command {
    Command::Decide { approval: approval.clone(), decision, by: "me".into(), comment: "fine".into() }
}

async fn an_approval_is_decided_once(place: &Place) {
    let (run, approval) = ask(place, "appr_1", ApprovalTimeout::Reject).await;
    assert_eq!(place.hot.run_of_approval(&approval).await, Ok(Some(run)));
    place.command(run, decide(&approval, Decision::Approved)).await.expect("decided");
    let again = place.command(run, decide(&approval, Decision::Rejected)).await;
    assert_eq!(again, Err(StoreError::Refused(Refusal::NotPending)));
    assert_eq!(place.hot.run_of_approval(&approval).await, Ok(None));
    place.pass("n1").await;
    place.ended(run, RunStatus::Succeeded).await;
}

async fn an_approval_times_out_by_its_policy(place: &Place) {
    for (i, (policy, status)) in [
        (ApprovalTimeout::Approve, None),
        (ApprovalTimeout::Reject, Some("rejected")),
        (ApprovalTimeout::Fail, Some("timeout")),
    ]
    .into_iter()
    .enumerate()
    {
        let (run, _) = ask(place, &format!("appr_{i}"), policy).await;
        pass_time(place, 60).await;
        match status {
            None => {
                place.pass("n1").await;
                place.ended(run, RunStatus::Succeeded).await;
            }
            Some(code) => {
                place.ended(run, RunStatus::Failed).await;
                let record = place.archive.run(run).await.expect("answered").expect("archived");
                assert_eq!(&*record.error.expect("an error").code, code);
            }
        }
    }
}

async fn a_signal_may_come_before_or_after(place: &Place) {
    let payload = Payload::from_value(&serde_json::json!({"n": 1}));
    let signal = || Command::Signal { name: "go".into(), payload: payload.clone() };
    for early in [true, false] {
        let run = place.start(&Sketch::chain(2)).await;
        if early {
            place.command(run, signal()).await.expect("taken");
        }
        let task = place.claim_node("n0").await;
        let on = WaitFor::Signal { name: "go".into(), timeout_at: None, on_timeout: SignalTimeout::Fail };
        place.settle(&task, TaskOutcome::Waiting(on)).await;
        if !early {
            place.nothing_to_claim().await;
            place.command(run, signal()).await.expect("taken");
        }
        let next = place.claim_node("n1").await;
        assert_eq!(next.reads[0].output, payload);
        place.succeed(&next).await;
        place.ended(run, RunStatus::Succeeded).await;
    }
}

async fn spawn(place: &Place, count: usize, concurrency: u32, stop_on_failure: bool) -> (RunId, Vec<RunId>) {
    let mut parent = Sketch::chain(1);
    parent.nodes[0].id = "map".into();
    let definition = place.learn(&Sketch::chain(1)).await.hash;
    let run = place.start(&parent).await;
    let task = place.claim_node("map").await;
    let children: Vec<RunId> = (0..count).map(|_| place.fresh_run()).collect();
    let plan = ChildrenPlan {
        workflow: "child".into(),
        definition,
        children: children.iter().map(|run| ChildSpec { run: *run, input: Payload::null() }).collect(),
        concurrency,
        stop_on_failure,
        timeout_at: Some(place.clock.now().plus(Duration::from_secs(60))),
    };
    place.settle(&task, TaskOutcome::Waiting(WaitFor::Children(Box::new(plan)))).await;
    (run, children)
}

async fn children_run_and_report(place: &Place) {
    let (run, children) = spawn(place, 3, 2, true).await;
    let first_two = place.claim(10).await;
    assert_eq!(first_two.iter().map(|task| task.run).collect::<Vec<_>>(), children[..2]);
    place.succeed(&first_two[1]).await;
    let third = place.claim_node("n0").await;
    assert_eq!(third.run, children[2]);
    place.succeed(&first_two[0]).await;
    place.succeed(&third).await;
    let gather = place.claim_node("map").await;
    let ends = gather.children.as_ref().expect("its children's results");
    let succeeded = |child: &switchyard_core::run::Child| {
        child.end.as_ref().map(|end| end.status) == Some(EndStatus::Succeeded)
    };
    assert!(ends.len() == 3 && ends.iter().all(succeeded), "{ends:?}");
    place.succeed(&gather).await;
    place.ended(run, RunStatus::Succeeded).await;
    place.ended(children[0], RunStatus::Succeeded).await;
}

async fn a_failed_child_stops_the_others(place: &Place) {
    let (run, children) = spawn(place, 3, 2, true).await;
    let tasks = place.claim(10).await;
    place.settle(&tasks[0], failure()).await;
    place.ended(children[0], RunStatus::Failed).await;
    place.settle(&tasks[1], TaskOutcome::Cancelled).await;
    place.ended(children[1], RunStatus::Cancelled).await;
    let gather = place.claim_node("map").await;
    let ends = gather.children.clone().expect("its children's results");
    assert!(ends[2].end.is_none(), "the third never started");
    place.settle(&gather, failure()).await;
    place.ended(run, RunStatus::Failed).await;
}

async fn children_that_take_too_long_are_cancelled(place: &Place) {
    let (run, children) = spawn(place, 2, 1, true).await;
    let held = place.claim_node("n0").await;
    pass_time(place, 60).await;
    place.ended(run, RunStatus::Failed).await;
    place.settle(&held, TaskOutcome::Cancelled).await;
    place.ended(children[0], RunStatus::Cancelled).await;
    place.nothing_to_claim().await;
}
