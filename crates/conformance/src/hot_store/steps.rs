//! The hot path: settle, release, claim (I2, I4, I5).

use switchyard_core::Payload;
use switchyard_core::ir::sketch::{DrawnOnError, Sketch};
use switchyard_core::run::{RunStatus, Settled, Settlement, SkipReason, TaskOutcome};

use crate::hot_store::fixture::{claim_of, failure, passing_failure};
use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    one_call_settles_and_claims_the_next(&backend.open().await).await;
    a_second_settlement_changes_nothing(&backend.open().await).await;
    a_stale_claim_changes_nothing(&backend.open().await).await;
    a_join_waits_for_all_its_needs(&backend.open().await).await;
    a_join_of_any_starts_at_the_first(&backend.open().await).await;
    skips_propagate_and_joins_survive_them(&backend.open().await).await;
    high_priority_goes_first(&backend.open().await).await;
    a_failure_is_retried_then_fails_the_run(&backend.open().await).await;
    on_error_decides(&backend.open().await).await;
    what_succeeded_is_undone_newest_first(&backend.open().await).await;
    a_run_keeps_to_its_parallelism(&backend.open().await).await;
}

async fn one_call_settles_and_claims_the_next(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(3)).await;
    let mut task = fixture.claim_node("n0").await;
    for next in ["n1", "n2"] {
        let output = Payload::from_value(&serde_json::json!({"from": *task.node}));
        let settlement =
            Settlement { claim: claim_of(&task), outcome: TaskOutcome::Succeeded(output.clone()) };
        let (settled, tasks) = fixture.hot.step(vec![settlement], &fixture.want(1)).await.expect("a step");
        assert_eq!(settled, [Settled::Applied]);
        assert_eq!(&*tasks[0].node, next);
        assert_eq!(tasks[0].reads[0].output, output, "a claim brings what the node reads");
        task = tasks[0].clone();
    }
    fixture.succeed(&task).await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_second_settlement_changes_nothing(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(2)).await;
    let task = fixture.claim_node("n0").await;
    fixture.succeed(&task).await;
    let before = fixture.events(run).await;
    assert_eq!(fixture.settle(&task, failure()).await, Settled::Duplicate);
    assert_eq!(fixture.events(run).await, before);
    fixture.pass("n1").await;
    fixture.ended(run, RunStatus::Succeeded).await;
    assert_eq!(fixture.settle(&task, failure()).await, Settled::Stale, "an ended run hears nothing");
}

async fn a_stale_claim_changes_nothing(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let first = fixture.claim_node("n0").await;
    assert_eq!(fixture.settle(&first, TaskOutcome::HandedBack).await, Settled::Applied);
    let second = fixture.claim_node("n0").await;
    assert_eq!((second.attempt, second.claim), (first.attempt, first.claim + 1));
    assert_eq!(fixture.settle(&first, failure()).await, Settled::Stale);
    fixture.succeed(&second).await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_join_waits_for_all_its_needs(fixture: &Fixture) {
    let sketch = Sketch::new().node("a", &[]).node("b", &[]).node("c", &["a", "b"]);
    let run = fixture.start(&sketch).await;
    let both = fixture.claim(10).await;
    assert_eq!(both.len(), 2);
    fixture.succeed(&both[0]).await;
    fixture.nothing_to_claim().await;
    fixture.succeed(&both[1]).await;
    fixture.pass("c").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn a_join_of_any_starts_at_the_first(fixture: &Fixture) {
    let sketch = Sketch::new().node("a", &[]).node("b", &[]).node("c", &["a", "b"]).with(|c| c.any = true);
    let run = fixture.start(&sketch).await;
    let both = fixture.claim(2).await;
    fixture.succeed(&both[1]).await;
    fixture.pass("c").await;
    fixture.nothing_to_claim().await;
    fixture.succeed(&both[0]).await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn skips_propagate_and_joins_survive_them(fixture: &Fixture) {
    let sketch =
        Sketch::new().node("a", &[]).node("b", &[]).node("after_a", &["a"]).node("join", &["after_a", "b"]);
    let run = fixture.start(&sketch).await;
    let both = fixture.claim(2).await;
    fixture.settle(&both[0], TaskOutcome::Skipped(SkipReason::Condition)).await;
    let after_a = fixture.claim_node("after_a").await;
    assert!(after_a.skip, "none of its needs came true");
    fixture.settle(&after_a, TaskOutcome::Skipped(SkipReason::NoNeedFired)).await;
    fixture.nothing_to_claim().await;
    fixture.succeed(&both[1]).await;
    let join = fixture.claim_node("join").await;
    assert!(!join.skip, "one of its needs came true");
    fixture.succeed(&join).await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn high_priority_goes_first(fixture: &Fixture) {
    let sketch = Sketch::new()
        .node("low", &[])
        .with(|node| node.priority = Some(1))
        .node("normal", &[])
        .node("high", &[])
        .with(|node| node.priority = Some(10));
    fixture.start(&sketch).await;
    let order: Vec<_> = fixture.claim(3).await.into_iter().map(|task| task.node).collect();
    assert_eq!(order.iter().map(|node| &**node).collect::<Vec<_>>(), ["high", "normal", "low"]);
}

async fn a_failure_is_retried_then_fails_the_run(fixture: &Fixture) {
    let sketch = Sketch::new().node("a", &[]).with(|node| node.max_attempts = 2).node("b", &[]);
    let run = fixture.start(&sketch).await;
    let both = fixture.claim(2).await;
    fixture.settle(&both[0], passing_failure()).await;
    fixture.nothing_to_claim().await;
    fixture.clock.advance(std::time::Duration::from_secs(1));
    fixture.hot.fire_timers().await.expect("timers fire");
    let again = fixture.claim_node("a").await;
    assert_eq!(again.attempt, 2);
    fixture.settle(&again, passing_failure()).await;
    assert_eq!(fixture.state(run).await.status(), RunStatus::Closing, "`b` is still running");
    fixture.succeed(&both[1]).await;
    fixture.ended(run, RunStatus::Failed).await;
    let error = fixture.archive.run(run).await.expect("answered").expect("archived").error.expect("an error");
    assert_eq!((error.node.as_deref(), error.attempt, &*error.code), (Some("a"), Some(2), "oops"));
}

async fn on_error_decides(fixture: &Fixture) {
    let sketch = Sketch::new()
        .node("a", &[])
        .with(|a| a.on_error = DrawnOnError::Goto("rescue".into()))
        .node("b", &["a"])
        .node("rescue", &[])
        .with(|rescue| rescue.on_error = DrawnOnError::Continue)
        .node("end", &["b", "rescue"]);
    let run = fixture.start(&sketch).await;
    let a = fixture.claim_node("a").await;
    fixture.settle(&a, failure()).await;
    let mut next = fixture.claim(2).await;
    next.sort_by(|a, b| a.node.cmp(&b.node));
    assert_eq!((&*next[0].node, next[0].skip), ("b", true));
    assert_eq!((&*next[1].node, next[1].skip), ("rescue", false));
    fixture.settle(&next[0], TaskOutcome::Skipped(SkipReason::NoNeedFired)).await;
    fixture.settle(&next[1], failure()).await;
    fixture.pass("end").await;
    fixture.ended(run, RunStatus::Succeeded).await;
}

async fn what_succeeded_is_undone_newest_first(fixture: &Fixture) {
    let sketch = Sketch::new()
        .node("a", &[])
        .with(|node| node.compensated = true)
        .node("b", &["a"])
        .with(|node| node.compensated = true)
        .node("c", &["b"])
        .with(|node| node.compensated = true);
    let run = fixture.start(&sketch).await;
    fixture.pass("a").await;
    fixture.pass("b").await;
    let c = fixture.claim_node("c").await;
    fixture.settle(&c, failure()).await;
    assert_eq!(fixture.state(run).await.status(), RunStatus::Compensating);
    let undo_b = fixture.claim_node("b/compensate").await;
    fixture.nothing_to_claim().await;
    fixture.settle(&undo_b, failure()).await;
    fixture.pass("a/compensate").await;
    fixture.ended(run, RunStatus::Failed).await;
    let error = fixture.archive.run(run).await.expect("answered").expect("archived").error.expect("an error");
    assert_eq!(error.node.as_deref(), Some("c"), "the cause stays the cause");
    assert_eq!(error.not_compensated.iter().map(|node| &**node).collect::<Vec<_>>(), ["b"]);
}

async fn a_run_keeps_to_its_parallelism(fixture: &Fixture) {
    let mut sketch = (0..5).fold(Sketch::new(), |sketch, i| sketch.node(&format!("n{i}"), &[]));
    sketch.parallelism = Some(2);
    sketch.nodes[4].priority = Some(9);
    let run = fixture.start(&sketch).await;
    let mut order = Vec::new();
    let mut held = fixture.claim(10).await;
    assert_eq!(held.len(), 2);
    while let Some(task) = held.pop() {
        order.push(task.node.to_string());
        fixture.succeed(&task).await;
        held.extend(fixture.claim(10).await);
        assert!(held.len() <= 2);
    }
    assert_eq!(order.len(), 5);
    assert!(order.iter().position(|node| node == "n4") < Some(3), "priority first, then age: {order:?}");
    fixture.ended(run, RunStatus::Succeeded).await;
}
