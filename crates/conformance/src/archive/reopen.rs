//! Acknowledged data is still there after the location is opened again.

use std::time::Duration;

use switchyard_core::run::{Decision, EndStatus};
use switchyard_core::{ApprovalId, Hash, Payload};
use switchyard_store::{ApprovalFilter, StoreError};

use crate::archive::Backend;
use crate::archive::fixtures::{
    History, accepted, accepted_with_key, at, decided, ended, every_kind, node_started, node_succeeded,
    node_waiting, run_id,
};

pub async fn all<B: Backend>(backend: &B) {
    histories_and_rows_are_still_there(backend).await;
    the_rest_is_still_there(backend).await;
    a_history_goes_on_where_it_was(backend).await;
    an_archive_that_refused_can_be_opened_again(backend).await;
}

async fn histories_and_rows_are_still_there<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut whole = History::of(run_id(0));
    let events = whole.all(every_kind());
    archive.append(events.clone()).await.unwrap();
    History::of(run_id(1)).put(&*archive, [accepted(), ended(EndStatus::Succeeded)]).await;
    let mut third = History::of(run_id(2));
    third.put(&*archive, [accepted(), node_waiting("approve", "appr_2")]).await;
    third.put(&*archive, [decided("approve", "appr_2", Decision::Rejected)]).await;
    let rows = [archive.run(run_id(0)).await.unwrap(), archive.run(run_id(1)).await.unwrap()];
    let approvals = archive.approvals(&ApprovalFilter::default()).await.unwrap();
    let unfinished = archive.unfinished().await.unwrap();
    drop(archive);

    let archive = backend.open(&location).await;
    assert_eq!(archive.events(run_id(0), 0, 100).await.unwrap(), events);
    assert_eq!([archive.run(run_id(0)).await.unwrap(), archive.run(run_id(1)).await.unwrap()], rows);
    assert_eq!(archive.approvals(&ApprovalFilter::default()).await.unwrap(), approvals);
    assert_eq!(archive.unfinished().await.unwrap(), unfinished);
    assert!(archive.approval(&ApprovalId::new("appr_2")).await.unwrap().is_some());
}

async fn the_rest_is_still_there<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let hash = Hash::of(b"{}");
    archive.put_definition(hash, "{}".into()).await.unwrap();
    let workflow = archive.register_workflow("enrich", hash, at(1)).await.unwrap();
    archive.cache("save", "k", Payload::null(), at(0), Duration::from_secs(10)).await.unwrap();
    History::of(run_id(0)).put(&*archive, [accepted_with_key("order-17", hash)]).await;
    drop(archive);

    let archive = backend.open(&location).await;
    assert_eq!(archive.definition(hash).await.unwrap().as_deref(), Some("{}"));
    assert_eq!(archive.workflows().await.unwrap(), [workflow]);
    assert_eq!(archive.cached("save", "k", at(5)).await.unwrap(), Some(Payload::null()));
    assert_eq!(archive.by_idempotency_key("order-17").await.unwrap(), Some((run_id(0), hash)));
}

async fn a_history_goes_on_where_it_was<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let events = history.all([accepted(), node_started("a"), node_succeeded("a"), node_started("b")]);
    archive.append(events[..2].to_vec()).await.unwrap();
    drop(archive);

    // A caller that got no answer sends its events again.
    let archive = backend.open(&location).await;
    archive.append(events[..3].to_vec()).await.unwrap();
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap(), events[..3]);
    drop(archive);

    let archive = backend.open(&location).await;
    archive.append(events[3..].to_vec()).await.unwrap();
    assert_eq!(archive.run(history.run).await.unwrap().unwrap().last_seq, 4);
    history.seq += 1;
    let refused = archive.append(vec![history.next(node_succeeded("b"))]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "a gap is seen after opening, too: {refused:?}");
}

async fn an_archive_that_refused_can_be_opened_again<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    history.put(&*archive, [accepted()]).await;
    let mut gap = history.next(node_started("a"));
    gap.seq += 1;
    archive.append(vec![gap.clone()]).await.unwrap_err();
    drop(archive);

    let archive = backend.open(&location).await;
    gap.seq -= 1;
    archive.append(vec![gap]).await.unwrap();
    assert_eq!(archive.run(history.run).await.unwrap().unwrap().last_seq, 2);
}
