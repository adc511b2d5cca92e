//! Retention: runs that a policy no longer keeps are removed.

use std::time::Duration;

use switchyard_core::run::{Accepted, EndStatus, Event, EventKind, ParentLink};
use switchyard_core::{Hash, RunId, Timestamp};
use switchyard_store::{ApprovalFilter, Journal, RetentionPolicy, RunFilter, RunIndex};

use crate::archive::Backend;
use crate::archive::fixtures::{
    History, acceptance, accepted, accepted_as, accepted_with_key, at, ended, node_waiting, retried, run_id,
};

pub async fn all<B: Backend>(backend: &B) {
    an_empty_policy_keeps_everything(backend).await;
    old_runs_go_by_age(backend).await;
    the_latest_ends_stay_by_count(backend).await;
    a_pass_takes_the_earliest_ends_first(backend).await;
    nothing_of_a_removed_run_is_left(backend).await;
    children_go_with_their_parent(backend).await;
    a_parent_stays_as_long_as_a_child_goes_on(backend).await;
    what_goes_on_stays(backend).await;
}

const BATCH: usize = 100;

fn by_age(seconds: u64) -> RetentionPolicy {
    RetentionPolicy { keep_for: Some(Duration::from_secs(seconds)), ..RetentionPolicy::default() }
}

fn by_count(runs: u64) -> RetentionPolicy {
    RetentionPolicy { keep_runs: Some(runs), ..RetentionPolicy::default() }
}

/// A run that was accepted and ended at this moment.
async fn put_ended(archive: &dyn Journal, run: RunId, first: EventKind, end: Timestamp) {
    let mut history = History::of(run);
    let events = history.all([first, ended(EndStatus::Succeeded)]);
    archive.append(events.into_iter().map(|event| Event { at: end, ..event }).collect()).await.unwrap();
}

fn child_of(parent: RunId) -> EventKind {
    let parent = Some(ParentLink { run: parent, node: "each".into(), index: 0, depth: 1 });
    accepted_as(Accepted { parent, ..acceptance() })
}

async fn left(archive: &dyn RunIndex) -> Vec<RunId> {
    let filter = RunFilter { include_children: true, limit: 1_000, ..RunFilter::default() };
    archive.runs(&filter).await.unwrap().items.iter().rev().map(|run| run.run_id).collect()
}

async fn an_empty_policy_keeps_everything<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    put_ended(&*archive, run_id(0), accepted(), at(1)).await;
    assert_eq!(archive.retain(&RetentionPolicy::default(), at(1_000_000), BATCH).await.unwrap(), 0);
    assert_eq!(left(&*archive).await, [run_id(0)]);
}

async fn old_runs_go_by_age<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    for n in 0..4 {
        put_ended(&*archive, run_id(n), accepted(), at(u64::from(n) * 10)).await;
    }
    assert_eq!(archive.retain(&by_age(100), at(99), BATCH).await.unwrap(), 0);
    assert_eq!(archive.retain(&by_age(100), at(110), BATCH).await.unwrap(), 2);
    assert_eq!(left(&*archive).await, [2, 3].map(run_id));
    assert_eq!(archive.retain(&by_age(100), at(110), BATCH).await.unwrap(), 0);
}

async fn the_latest_ends_stay_by_count<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    // The runs end in another order than they were accepted: the end decides.
    for (n, end) in [(0, 40), (1, 10), (2, 30), (3, 20)] {
        put_ended(&*archive, run_id(n), accepted(), at(end)).await;
    }
    put_ended(&*archive, run_id(9), child_of(run_id(0)), at(50)).await;
    assert_eq!(archive.retain(&by_count(4), at(60), BATCH).await.unwrap(), 0, "a child is not counted");
    assert_eq!(archive.retain(&by_count(2), at(60), BATCH).await.unwrap(), 2);
    assert_eq!(left(&*archive).await, [0, 2, 9].map(run_id));
    let both = RetentionPolicy { keep_for: Some(Duration::from_secs(25)), ..by_count(1) };
    assert_eq!(archive.retain(&both, at(60), BATCH).await.unwrap(), 1, "either of the two is enough");
    assert_eq!(archive.retain(&by_count(0), at(60), BATCH).await.unwrap(), 1);
    assert_eq!(left(&*archive).await, []);
}

async fn a_pass_takes_the_earliest_ends_first<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    for (n, end) in [(0, 40), (1, 10), (2, 30), (3, 20), (4, 50)] {
        put_ended(&*archive, run_id(n), accepted(), at(end)).await;
    }
    assert_eq!(archive.retain(&by_age(0), at(60), 2).await.unwrap(), 2);
    assert_eq!(left(&*archive).await, [0, 2, 4].map(run_id));
    assert_eq!(archive.retain(&by_age(0), at(60), 2).await.unwrap(), 2);
    assert_eq!(archive.retain(&by_age(0), at(60), 2).await.unwrap(), 1, "fewer than asked for are the last");
    assert_eq!(left(&*archive).await, []);
}

async fn nothing_of_a_removed_run_is_left<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let first = || accepted_with_key("order-17", Hash::of(b"body"));
    let mut history = History::of(run_id(0));
    history.put(&*archive, [first(), node_waiting("approve", "appr_1"), ended(EndStatus::Failed)]).await;
    History::of(run_id(1)).put(&*archive, [accepted(), node_waiting("approve", "appr_2")]).await;
    assert_eq!(archive.retain(&by_age(0), at(100), BATCH).await.unwrap(), 1);

    assert_eq!(archive.run(run_id(0)).await.unwrap(), None);
    assert_eq!(archive.events(run_id(0), 0, 10).await.unwrap(), []);
    assert_eq!(archive.by_idempotency_key("order-17").await.unwrap(), None);
    let approvals = archive.approvals(&ApprovalFilter::default()).await.unwrap();
    assert_eq!(approvals.iter().map(|a| a.approval.as_str()).collect::<Vec<_>>(), ["appr_2"]);
    // The archive removed the run's position as well: a history has to begin at its first event.
    archive.append(vec![history.next(retried())]).await.unwrap_err();
    History::of(run_id(2)).put(&*archive, [first()]).await;
}

async fn children_go_with_their_parent<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    put_ended(&*archive, run_id(0), accepted(), at(30)).await;
    put_ended(&*archive, run_id(1), child_of(run_id(0)), at(10)).await;
    put_ended(&*archive, run_id(2), child_of(run_id(1)), at(5)).await;
    put_ended(&*archive, run_id(3), accepted(), at(90)).await;
    assert_eq!(archive.retain(&by_age(50), at(70), BATCH).await.unwrap(), 0, "they are as old as the first");
    assert_eq!(left(&*archive).await.len(), 4);
    assert_eq!(archive.retain(&by_age(50), at(80), BATCH).await.unwrap(), 1);
    assert_eq!(left(&*archive).await, [run_id(3)]);
}

async fn a_parent_stays_as_long_as_a_child_goes_on<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    put_ended(&*archive, run_id(0), accepted(), at(10)).await;
    put_ended(&*archive, run_id(1), child_of(run_id(0)), at(10)).await;
    let mut grandchild = History::of(run_id(2));
    grandchild.put(&*archive, [child_of(run_id(1))]).await;
    put_ended(&*archive, run_id(3), accepted(), at(20)).await;
    // A run that cannot be removed must not block the next one.
    assert_eq!(archive.retain(&by_age(0), at(100), 1).await.unwrap(), 1);
    assert_eq!(left(&*archive).await, [0, 1, 2].map(run_id));
    grandchild.put(&*archive, [ended(EndStatus::Cancelled)]).await;
    assert_eq!(archive.retain(&by_age(0), at(100), 1).await.unwrap(), 1);
    assert_eq!(left(&*archive).await, []);
}

async fn what_goes_on_stays<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    History::of(run_id(0)).put(&*archive, [accepted()]).await;
    let mut again = History::of(run_id(1));
    again.put(&*archive, [accepted(), ended(EndStatus::Failed), retried()]).await;
    let policy = RetentionPolicy { keep_for: Some(Duration::ZERO), ..by_count(0) };
    assert_eq!(archive.retain(&policy, at(1_000), BATCH).await.unwrap(), 0);
    assert_eq!(left(&*archive).await, [0, 1].map(run_id));
    again.put(&*archive, [ended(EndStatus::Failed)]).await;
}
