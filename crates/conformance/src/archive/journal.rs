//! Events are stored once, in order, and read back unchanged.

use std::sync::Arc;

use futures::future::join_all;
use switchyard_core::run::{Event, EventKind, RunStatus};
use switchyard_store::{Archive, RunFilter, StoreError};

use crate::archive::Backend;
use crate::archive::fixtures::{
    History, accepted, at, every_kind, every_wait, node_started, node_succeeded, paused, run_id,
};

pub async fn all<B: Backend>(backend: &B) {
    every_kind_comes_back_as_it_was(backend).await;
    pages_follow_each_other(backend).await;
    the_order_is_that_of_the_calls(backend).await;
    an_ack_that_nobody_awaits_is_no_loss(backend).await;
    a_repetition_changes_nothing(backend).await;
    an_overlap_adds_only_what_is_new(backend).await;
    no_events_are_taken_at_once(backend).await;
    a_gap_is_refused(backend).await;
    another_history_is_refused(backend).await;
    after_a_refusal_the_next_is_taken(backend).await;
    a_history_without_its_beginning_is_refused(backend).await;
    many_runs_at_once_each_see_their_own(backend).await;
}

async fn every_kind_comes_back_as_it_was<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let events = history.all(every_kind().into_iter().chain(every_wait()));
    archive.append(events.clone()).await.unwrap();
    assert_eq!(archive.events(history.run, 0, usize::MAX).await.unwrap(), events);
}

async fn pages_follow_each_other<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let steps = (0..9).map(|n| node_started(&format!("node_{n}")));
    history.put(&*archive, std::iter::once(accepted()).chain(steps)).await;

    let seqs = async |after, limit| -> Vec<u64> {
        let events = archive.events(history.run, after, limit).await.unwrap();
        events.iter().map(|event| event.seq).collect()
    };
    assert_eq!(seqs(0, 4).await, [1, 2, 3, 4]);
    assert_eq!(seqs(4, 4).await, [5, 6, 7, 8]);
    assert_eq!(seqs(8, 4).await, [9, 10]);
    assert_eq!(seqs(10, 4).await, [0; 0]);
    assert_eq!(seqs(u64::MAX, usize::MAX).await, [0; 0]);
    assert_eq!(archive.events(run_id(1), 0, 10).await.unwrap(), [], "an unknown run");
}

async fn the_order_is_that_of_the_calls<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let mut acks = vec![archive.append(vec![history.next(accepted())])];
    acks.extend((0..50).map(|n| archive.append(vec![history.next(node_started(&format!("node_{n}")))])));
    // The last is awaited first: the place in the order was taken at the call.
    for ack in acks.into_iter().rev() {
        ack.await.unwrap();
    }
    assert_eq!(archive.run(history.run).await.unwrap().unwrap().last_seq, 51);
}

async fn an_ack_that_nobody_awaits_is_no_loss<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    drop(archive.append(vec![history.next(accepted())]));
    history.put(&*archive, [node_started("fetch")]).await;
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap().len(), 2);
}

async fn a_repetition_changes_nothing<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let events = history.all([accepted(), paused(), crate::archive::fixtures::resumed()]);
    archive.append(events.clone()).await.unwrap();
    let before = archive.run(history.run).await.unwrap();

    archive.append(events.clone()).await.unwrap();
    archive.append(vec![events[1].clone()]).await.unwrap();

    assert_eq!(archive.events(history.run, 0, 10).await.unwrap(), events);
    assert_eq!(archive.run(history.run).await.unwrap(), before, "a repeated pause must not pause again");
}

async fn an_overlap_adds_only_what_is_new<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let events = history.all([accepted(), node_started("a"), node_succeeded("a"), node_started("b")]);
    archive.append(events[..2].to_vec()).await.unwrap();
    archive.append(events[1..].to_vec()).await.unwrap();
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap(), events);
}

async fn no_events_are_taken_at_once<B: Backend>(backend: &B) {
    let location = backend.location().await;
    backend.open(&location).await.append(vec![]).await.unwrap();
}

async fn a_gap_is_refused<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let events = history.all([accepted(), node_started("a"), node_succeeded("a"), node_started("b")]);
    archive.append(events[..2].to_vec()).await.unwrap();

    let refused = archive.append(events[3..].to_vec()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains(&history.run.to_string()) && text.contains('4'), "{text}");

    assert_eq!(archive.events(history.run, 0, 10).await.unwrap(), events[..2]);
    let filter = RunFilter { limit: 10, ..RunFilter::default() };
    assert_eq!(archive.runs(&filter).await.unwrap().items.len(), 1);
}

/// A call is refused whole; the calls before and behind it are kept.
async fn another_history_is_refused<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let (mut history, mut bystander, mut stranger) =
        (History::of(run_id(0)), History::of(run_id(1)), History::of(run_id(2)));
    let events = history.all([accepted(), node_started("a"), node_succeeded("a"), node_started("b")]);
    archive.append(events[..3].to_vec()).await.unwrap();

    let otherwise = Event { kind: node_started("z"), ..events[1].clone() };
    let later = Event { at: at(99), ..events[2].clone() };
    let diverged = |seq| Err(StoreError::Diverged { run: history.run, seq });
    let mut with_company = stranger.all([accepted()]);
    with_company.extend([otherwise.clone(), events[3].clone()]);
    let calls = vec![
        (bystander.all([accepted()]), Ok(())),
        (vec![otherwise], diverged(2)),
        (with_company, diverged(2)),
        (vec![later], diverged(3)),
        (vec![], Ok(())),
        (bystander.all([paused()]), Ok(())),
        (events.clone(), Ok(())),
    ];
    let acks: Vec<_> =
        calls.into_iter().map(|(events, expected)| (archive.append(events), expected)).collect();
    for (n, (ack, expected)) in acks.into_iter().enumerate() {
        assert_eq!(ack.await, expected, "call {n}");
    }
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap(), events);
    assert_eq!(archive.run(bystander.run).await.unwrap().unwrap().status, RunStatus::Paused);
    assert_eq!(archive.run(stranger.run).await.unwrap(), None, "nothing of a refused call is kept");
}

async fn after_a_refusal_the_next_is_taken<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let events = history.all([accepted(), node_started("a"), node_succeeded("a")]);
    archive.append(events[..1].to_vec()).await.unwrap();
    archive.append(events[2..].to_vec()).await.unwrap_err();
    archive.append(events[1..].to_vec()).await.unwrap();
    History::of(run_id(1)).put(&*archive, [accepted()]).await;
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap(), events);
}

async fn a_history_without_its_beginning_is_refused<B: Backend>(backend: &B) {
    for first in [2, 1] {
        let location = backend.location().await;
        let archive = backend.open(&location).await;
        let mut event = History::of(run_id(0)).next(EventKind::RunStarted {});
        event.seq = first;
        let refused = archive.append(vec![event]).await.unwrap_err();
        assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
        assert_eq!(archive.run(run_id(0)).await.unwrap(), None);
    }
}

async fn many_runs_at_once_each_see_their_own<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let lanes = (0..100).map(|n| tokio::spawn(one_lane(archive.clone(), n)));
    for lane in join_all(lanes).await {
        lane.unwrap();
    }
    assert_eq!(archive.unfinished().await.unwrap().len(), 100);
}

/// Reads after every ack: acknowledged events are there.
async fn one_lane(archive: Arc<dyn Archive>, n: u32) {
    let mut history = History::of(run_id(n));
    history.put(&*archive, [accepted()]).await;
    for step in 0..10 {
        let node = format!("node_{step}");
        history.put(&*archive, [node_started(&node), node_succeeded(&node)]).await;
        let seen = archive.run(history.run).await.unwrap().unwrap();
        assert_eq!(seen.last_seq, history.seq, "what was acknowledged can be read");
    }
    let events = archive.events(history.run, 0, 100).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=history.seq));
    assert!(events.iter().all(|event| event.run == history.run));
}
