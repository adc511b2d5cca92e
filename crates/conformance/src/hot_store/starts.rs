//! Delayed starts, and the priority of a whole run.

use std::time::Duration;

use switchyard_core::in_flight::Command;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{
    Accepted, ChildSpec, ChildrenPlan, Concurrency, EventKind, Run, RunStatus, TaskOutcome, WaitFor,
};
use switchyard_core::{Labels, Payload, RunId};
use switchyard_store::Clock;

use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    a_delayed_run_starts_when_its_time_comes(&backend.open().await).await;
    a_start_that_has_passed_is_now(&backend.open().await).await;
    a_delayed_run_stands_in_line_only_from_its_start(&backend.open().await).await;
    a_delayed_run_can_be_cancelled_and_retried(&backend.open().await).await;
    a_delayed_run_that_was_paused_waits_to_be_resumed(&backend.open().await).await;
    a_delayed_run_is_restored(&backend.open().await, &backend.open().await).await;
    the_deadline_of_a_graph_counts_from_the_start(&backend.open().await).await;
    the_priority_of_a_run_is_that_of_nodes_without_one(&backend.open().await).await;
    the_priority_of_a_run_is_kept_step_by_step(&backend.open().await).await;
    children_have_the_priority_of_their_parent(&backend.open().await).await;
}

async fn delayed(fixture: &Fixture, sketch: &Sketch, seconds: u64) -> Accepted {
    let start_at = Some(fixture.clock.now().plus(Duration::from_secs(seconds)));
    Accepted { start_at, ..fixture.plain(sketch).await }
}

async fn pass_time(fixture: &Fixture, seconds: u64) {
    fixture.clock.advance(Duration::from_secs(seconds));
    fixture.hot.fire_timers().await.expect("timers fire");
}

fn cancel() -> Command {
    Command::Cancel { by: "me".into(), reason: "".into(), compensate: true, now: false }
}

async fn a_delayed_run_starts_when_its_time_comes(fixture: &Fixture) {
    let run = fixture.start_as(delayed(fixture, &Sketch::chain(1), 60).await).await;
    let state = fixture.state(run).await;
    let at = fixture.clock.now().plus(Duration::from_secs(60));
    assert_eq!((state.status(), state.starts_at()), (RunStatus::Queued, Some(at)));
    let record = fixture.archive.run(run).await.expect("answered").expect("archived");
    assert_eq!(record.status, RunStatus::Queued);
    assert_eq!(fixture.hot.fire_timers().await.expect("answered").1, Some(at));
    pass_time(fixture, 59).await;
    fixture.nothing_to_claim().await;
    pass_time(fixture, 1).await;
    assert_eq!(fixture.state(run).await.starts_at(), None);
    fixture.pass("n0").await;
    fixture.ended(run, RunStatus::Succeeded).await;
    let kinds: Vec<_> = fixture.events(run).await.iter().map(|event| event.kind.name()).collect();
    assert_eq!(kinds, ["run_accepted", "run_started", "node_started", "node_succeeded", "run_ended"]);
}

async fn a_start_that_has_passed_is_now(fixture: &Fixture) {
    let start_at = Some(fixture.clock.now().minus(Duration::from_secs(1)));
    let run = fixture.start_as(Accepted { start_at, ..fixture.plain(&Sketch::chain(1)).await }).await;
    assert_eq!(fixture.state(run).await.status(), RunStatus::Running);
    fixture.pass("n0").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_delayed_run_stands_in_line_only_from_its_start(fixture: &Fixture) {
    let concurrency = Some(Concurrency { key: "tenant".into(), limit: 1 });
    let late = Accepted { concurrency: concurrency.clone(), ..delayed(fixture, &Sketch::chain(1), 60).await };
    let late = fixture.start_as(late).await;
    let now = Accepted { concurrency, ..fixture.plain(&Sketch::chain(1)).await };
    let first = fixture.start_as(now.clone()).await;
    let second = fixture.start_as(now).await;
    let held = fixture.claim_node("n0").await;
    assert_eq!(held.run, first, "a run that has not come to its start holds no place");
    pass_time(fixture, 60).await;
    let state = fixture.state(late).await;
    assert_eq!((state.status(), state.starts_at()), (RunStatus::Queued, None), "now it stands in line");
    fixture.succeed(&held).await;
    for expected in [second, late] {
        let next = fixture.claim_node("n0").await;
        assert_eq!(next.run, expected);
        fixture.succeed(&next).await;
        fixture.ended(expected, RunStatus::Succeeded).await;
    }
    let queued = |kind: &EventKind| matches!(kind, EventKind::RunQueued {});
    assert_eq!(fixture.events(late).await.iter().filter(|event| queued(&event.kind)).count(), 1);
}

async fn a_delayed_run_can_be_cancelled_and_retried(fixture: &Fixture) {
    let concurrency = Some(Concurrency { key: "tenant".into(), limit: 1 });
    let late = Accepted { concurrency: concurrency.clone(), ..delayed(fixture, &Sketch::chain(1), 60).await };
    let run = fixture.start_as(late).await;
    fixture.command(run, cancel()).await.expect("cancelled");
    fixture.ended(run, RunStatus::Cancelled).await;
    pass_time(fixture, 60).await;
    fixture.nothing_to_claim().await;

    let ir = fixture.learn(&Sketch::chain(1)).await;
    let ended = Run::replay(&fixture.events(run).await, &|_| Some(ir.clone())).expect("a whole history");
    fixture.hot.restore(vec![ended]).await.expect("restored");
    fixture.command(run, Command::Retry { by: "me".into() }).await.expect("retried");
    let task = fixture.claim_node("n0").await;
    let other = fixture.start_as(Accepted { concurrency, ..fixture.plain(&Sketch::chain(1)).await }).await;
    assert_eq!(fixture.state(other).await.status(), RunStatus::Queued, "the retried run has the key");
    fixture.succeed(&task).await;
    fixture.ended(run, RunStatus::Succeeded).await;
    fixture.pass("n0").await;
    fixture.ended(other, RunStatus::Succeeded).await;
}

async fn a_delayed_run_that_was_paused_waits_to_be_resumed(fixture: &Fixture) {
    let run = fixture.start_as(delayed(fixture, &Sketch::chain(1), 60).await).await;
    fixture.command(run, Command::Pause { by: "me".into() }).await.expect("paused");
    pass_time(fixture, 60).await;
    assert_eq!(fixture.state(run).await.status(), RunStatus::Paused);
    fixture.nothing_to_claim().await;
    fixture.command(run, Command::Resume { by: "me".into() }).await.expect("resumed");
    fixture.pass("n0").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

/// The second store gets only the history that the first one wrote.
async fn a_delayed_run_is_restored(lost: &Fixture, fresh: &Fixture) {
    let run = lost.start_as(delayed(lost, &Sketch::chain(1), 60).await).await;
    let events = lost.events(run).await;
    fresh.archive.append(events.clone()).await.expect("the archive survived");
    let ir = fresh.learn(&Sketch::chain(1)).await;
    let rebuilt = Run::replay(&events, &|_| Some(ir.clone())).expect("a whole history");
    fresh.hot.restore(vec![rebuilt]).await.expect("restored");
    fresh.nothing_to_claim().await;
    pass_time(fresh, 60).await;
    fresh.pass("n0").await;
    fresh.ended(run, RunStatus::Succeeded).await;
}

async fn the_deadline_of_a_graph_counts_from_the_start(fixture: &Fixture) {
    let mut ir = std::sync::Arc::into_inner(Sketch::chain(1).ir()).expect("it has one owner");
    ir.deadline = Some(Duration::from_secs(30));
    fixture.hot.learn(std::sync::Arc::new(ir)).await.expect("a graph is learnt");
    let run = fixture.start_as(delayed(fixture, &Sketch::chain(1), 60).await).await;
    let due = fixture.clock.now().plus(Duration::from_secs(90));
    assert_eq!(fixture.state(run).await.deadline, Some(due));
}

async fn order(fixture: &Fixture, count: usize) -> Vec<(RunId, String)> {
    let tasks = fixture.claim(count).await;
    tasks.iter().map(|task| (task.run, task.node.to_string())).collect()
}

async fn the_priority_of_a_run_is_that_of_nodes_without_one(fixture: &Fixture) {
    let sketch = Sketch::new().node("plain", &[]).node("own", &[]).with(|node| node.priority = Some(5));
    let usual = fixture.start(&sketch).await;
    let urgent = Accepted { priority: Some(10), ..fixture.plain(&sketch).await };
    let urgent = fixture.start_as(urgent).await;
    let idle = Accepted { priority: Some(1), ..fixture.plain(&sketch).await };
    let idle = fixture.start_as(idle).await;
    let expected = [
        (urgent, "plain"),
        (usual, "plain"),
        (usual, "own"),
        (urgent, "own"),
        (idle, "own"),
        (idle, "plain"),
    ];
    let expected: Vec<_> = expected.iter().map(|(run, node)| (*run, (*node).to_owned())).collect();
    assert_eq!(order(fixture, 10).await, expected);
}

/// Settlements release the next nodes into the same band, and a node that is handed back keeps it.
async fn the_priority_of_a_run_is_kept_step_by_step(fixture: &Fixture) {
    let sketch = Sketch::chain(3);
    let usual = fixture.start(&sketch).await;
    let urgent = Accepted { priority: Some(9), ..fixture.plain(&sketch).await };
    let urgent = fixture.start_as(urgent).await;
    for node in ["n0", "n1"] {
        let task = fixture.claim_node(node).await;
        assert_eq!(task.run, urgent);
        fixture.settle(&task, TaskOutcome::HandedBack).await;
        let task = fixture.claim_node(node).await;
        assert_eq!(task.run, urgent, "handed back, it is still before the others");
        fixture.succeed(&task).await;
    }
    fixture.command(urgent, Command::Pause { by: "me".into() }).await.expect("paused");
    fixture.command(urgent, Command::Resume { by: "me".into() }).await.expect("resumed");
    fixture.pass("n2").await;
    fixture.ended(urgent, RunStatus::Succeeded).await;
    for node in ["n0", "n1", "n2"] {
        fixture.pass(node).await;
    }
    fixture.ended(usual, RunStatus::Succeeded).await;
}

async fn children_have_the_priority_of_their_parent(fixture: &Fixture) {
    let definition = fixture.learn(&Sketch::chain(1)).await.hash;
    let parent = Accepted { priority: Some(10), ..fixture.plain(&Sketch::new().node("map", &[])).await };
    fixture.start_as(parent).await;
    let task = fixture.claim_node("map").await;
    fixture.start(&Sketch::chain(2)).await;
    let child = fixture.fresh_run();
    let plan = ChildrenPlan {
        workflow: "child".into(),
        definition,
        children: vec![ChildSpec { run: child, input: Payload::null(), labels: Labels::new() }],
        concurrency: 1,
        stop_on_failure: true,
        timeout_at: None,
    };
    fixture.settle(&task, TaskOutcome::Waiting(WaitFor::Children(Box::new(plan)))).await;
    assert_eq!(fixture.claim_node("n0").await.run, child, "it goes before a run that came first");
}
