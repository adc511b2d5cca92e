//! Nodes that wait: for a moment, a person, a signal, runs of their own.

use std::time::Duration;

use switchyard_core::in_flight::Command;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    ApprovalRequest, ApprovalTimeout, ChildSpec, ChildrenPlan, Decision, EndStatus, Refusal, RunStatus,
    SignalTimeout, TaskOutcome, WaitFor,
};
use switchyard_core::{ApprovalId, Payload, RunId};
use switchyard_store::{Clock, StoreError};

use crate::hot_store::fixture::failure;
use crate::hot_store::{Backend, Fixture};

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

async fn pass_time(fixture: &Fixture, seconds: u64) {
    fixture.clock.advance(Duration::from_secs(seconds));
    fixture.hot.fire_timers().await.expect("timers fire");
}

async fn a_timer_ends_a_sleep(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(2)).await;
    let task = fixture.claim_node("n0").await;
    let until = fixture.clock.now().plus(Duration::from_secs(60));
    fixture.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until })).await;
    assert_eq!(fixture.hot.fire_timers().await.expect("answered").1, Some(until));
    pass_time(fixture, 59).await;
    fixture.nothing_to_claim().await;
    pass_time(fixture, 1).await;
    fixture.pass("n1").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_clock_that_was_set_back_delays_by_no_more_than_it_was_wrong(fixture: &Fixture) {
    let begin = fixture.clock.now();
    let at = |seconds| begin.plus(Duration::from_secs(seconds));
    let before = fixture.start(&Sketch::chain(1)).await;
    let task = fixture.claim_node("n0").await;
    fixture.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until: at(60) })).await;
    // The clock is an hour behind for half a minute, in which another timer is set.
    fixture.clock.set(begin.minus(Duration::from_secs(3600)));
    let meanwhile = fixture.start(&Sketch::chain(1)).await;
    let task = fixture.claim_node("n0").await;
    let until = fixture.clock.now().plus(Duration::from_secs(60));
    fixture.settle(&task, TaskOutcome::Waiting(WaitFor::Timer { until })).await;
    assert_eq!(fixture.hot.fire_timers().await.expect("answered"), (0, Some(until)));
    pass_time(fixture, 30).await;
    fixture.state(before).await;
    fixture.clock.set(at(30));
    // The timer was set by the wrong clock and is due by the right one.
    assert_eq!(fixture.hot.fire_timers().await.expect("answered"), (1, Some(at(60))));
    fixture.ended(meanwhile, RunStatus::Succeeded).await;
    pass_time(fixture, 29).await;
    fixture.state(before).await;
    pass_time(fixture, 1).await;
    fixture.ended(before, RunStatus::Succeeded).await;
}

async fn ask(fixture: &Fixture, id: &str, on_timeout: ApprovalTimeout) -> (RunId, ApprovalId) {
    let run = fixture.start(&Sketch::chain(2)).await;
    let task = fixture.claim_node("n0").await;
    let approval = ApprovalId::new(id);
    let request = ApprovalRequest {
        approval: approval.clone(),
        approver: Some("manager".into()),
        prompt: None,
        payload: Payload::null(),
        timeout_at: Some(fixture.clock.now().plus(Duration::from_secs(60))),
        on_timeout,
    };
    fixture.settle(&task, TaskOutcome::Waiting(WaitFor::Approval(Box::new(request)))).await;
    let state = fixture.state(run).await;
    assert_eq!((state.counter, state.approvals), (0, 1), "a person is not a token in flight");
    (run, approval)
}

fn decide(approval: &ApprovalId, decision: Decision) -> Command {
    Command::Decide { approval: approval.clone(), decision, by: "me".into(), comment: "fine".into() }
}

async fn an_approval_is_decided_once(fixture: &Fixture) {
    let (run, approval) = ask(fixture, "appr_1", ApprovalTimeout::Reject).await;
    assert_eq!(fixture.hot.run_of_approval(&approval).await, Ok(Some(run)));
    fixture.command(run, decide(&approval, Decision::Approved)).await.expect("decided");
    let again = fixture.command(run, decide(&approval, Decision::Rejected)).await;
    assert_eq!(again, Err(StoreError::Refused(Refusal::NotPending)));
    assert_eq!(fixture.hot.run_of_approval(&approval).await, Ok(None));
    fixture.pass("n1").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn an_approval_times_out_by_its_policy(fixture: &Fixture) {
    for (i, (policy, status)) in [
        (ApprovalTimeout::Approve, None),
        (ApprovalTimeout::Reject, Some("rejected")),
        (ApprovalTimeout::Fail, Some("timeout")),
    ]
    .into_iter()
    .enumerate()
    {
        let (run, _) = ask(fixture, &format!("appr_{i}"), policy).await;
        pass_time(fixture, 60).await;
        match status {
            None => {
                fixture.pass("n1").await;
                fixture.ended(run, RunStatus::Succeeded).await;
            }
            Some(code) => {
                fixture.ended(run, RunStatus::Failed).await;
                let record = fixture.archive.run(run).await.expect("answered").expect("archived");
                assert_eq!(&*record.error.expect("an error").code, code);
            }
        }
    }
}

async fn a_signal_may_come_before_or_after(fixture: &Fixture) {
    let payload = Payload::from_value(&serde_json::json!({"n": 1}));
    let signal = || Command::Signal { name: "go".into(), payload: payload.clone() };
    for early in [true, false] {
        let run = fixture.start(&Sketch::chain(2)).await;
        if early {
            fixture.command(run, signal()).await.expect("taken");
        }
        let task = fixture.claim_node("n0").await;
        let on = WaitFor::Signal { name: "go".into(), timeout_at: None, on_timeout: SignalTimeout::Fail };
        fixture.settle(&task, TaskOutcome::Waiting(on)).await;
        if !early {
            fixture.nothing_to_claim().await;
            fixture.command(run, signal()).await.expect("taken");
        }
        let next = fixture.claim_node("n1").await;
        assert_eq!(next.reads[0].output, payload);
        fixture.succeed(&next).await;
        fixture.ended(run, RunStatus::Succeeded).await;
    }
}

async fn spawn(
    fixture: &Fixture,
    count: usize,
    concurrency: u32,
    stop_on_failure: bool,
) -> (RunId, Vec<RunId>) {
    let mut parent = Sketch::chain(1);
    parent.nodes[0].id = "map".into();
    let definition = fixture.learn(&Sketch::chain(1)).await.hash;
    let run = fixture.start(&parent).await;
    let task = fixture.claim_node("map").await;
    let children: Vec<RunId> = (0..count).map(|_| fixture.fresh_run()).collect();
    let plan = ChildrenPlan {
        workflow: "child".into(),
        definition,
        children: children.iter().map(|run| ChildSpec::plain(*run, Payload::null())).collect(),
        concurrency,
        stop_on_failure,
        timeout_at: Some(fixture.clock.now().plus(Duration::from_secs(60))),
    };
    fixture.settle(&task, TaskOutcome::Waiting(WaitFor::Children(Box::new(plan)))).await;
    (run, children)
}

async fn children_run_and_report(fixture: &Fixture) {
    let (run, children) = spawn(fixture, 3, 2, true).await;
    let first_two = fixture.claim(10).await;
    assert_eq!(first_two.iter().map(|task| task.run).collect::<Vec<_>>(), children[..2]);
    fixture.succeed(&first_two[1]).await;
    let third = fixture.claim_node("n0").await;
    assert_eq!(third.run, children[2]);
    fixture.succeed(&first_two[0]).await;
    fixture.succeed(&third).await;
    let gather = fixture.claim_node("map").await;
    let ends = gather.children.as_ref().expect("its children's results");
    let succeeded = |child: &switchyard_core::run::Child| {
        child.end.as_ref().map(|end| end.status) == Some(EndStatus::Succeeded)
    };
    assert!(ends.len() == 3 && ends.iter().all(succeeded), "{ends:?}");
    fixture.succeed(&gather).await;
    fixture.ended(run, RunStatus::Succeeded).await;
    fixture.ended(children[0], RunStatus::Succeeded).await;
}

async fn a_failed_child_stops_the_others(fixture: &Fixture) {
    let (run, children) = spawn(fixture, 3, 2, true).await;
    let tasks = fixture.claim(10).await;
    fixture.settle(&tasks[0], failure()).await;
    fixture.ended(children[0], RunStatus::Failed).await;
    fixture.settle(&tasks[1], TaskOutcome::Cancelled).await;
    fixture.ended(children[1], RunStatus::Cancelled).await;
    let gather = fixture.claim_node("map").await;
    let ends = gather.children.clone().expect("its children's results");
    assert!(ends[2].end.is_none(), "the third never started");
    fixture.settle(&gather, failure()).await;
    fixture.ended(run, RunStatus::Failed).await;
}

async fn children_that_take_too_long_are_cancelled(fixture: &Fixture) {
    let (run, children) = spawn(fixture, 2, 1, true).await;
    let held = fixture.claim_node("n0").await;
    pass_time(fixture, 60).await;
    fixture.ended(run, RunStatus::Failed).await;
    fixture.settle(&held, TaskOutcome::Cancelled).await;
    fixture.ended(children[0], RunStatus::Cancelled).await;
    fixture.nothing_to_claim().await;
}
