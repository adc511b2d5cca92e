//! Commands that took effect are found by the id that their caller gave them.

use std::time::Duration;

use switchyard_core::OperationId;
use switchyard_core::run::EndStatus;
use switchyard_store::{AppliedOperation, RetentionPolicy};

use crate::archive::Backend;
use crate::archive::fixtures::{
    History, accepted, at, ended, every_operation, operation, resumed, run_id, signalled,
};

pub async fn all<B: Backend>(backend: &B) {
    an_operation_is_found_by_run_and_id(backend).await;
    every_command_is_an_operation(backend).await;
    operations_outlive_a_restart_and_go_with_their_run(backend).await;
}

fn id(text: &str) -> OperationId {
    OperationId::new(text).expect("an operation id")
}

async fn an_operation_is_found_by_run_and_id<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let (first, second) = (operation("order 7", "go"), operation("order 7", "stop"));
    let mut history = History::of(run_id(0));
    history.put(&*archive, [accepted(), signalled(first.clone()), resumed()]).await;
    // The same id on another run is another operation.
    History::of(run_id(1)).put(&*archive, [accepted(), resumed(), signalled(second.clone())]).await;

    let found = archive.run_operation(run_id(0), &first.id).await.unwrap();
    assert_eq!(found, Some(AppliedOperation { seq: 2, command: first.command }));
    let found = archive.run_operation(run_id(1), &second.id).await.unwrap();
    assert_eq!(found, Some(AppliedOperation { seq: 3, command: second.command }));
    assert_eq!(archive.run_operation(run_id(0), &id("order")).await.unwrap(), None);
    assert_eq!(archive.run_operation(run_id(2), &id("order 7")).await.unwrap(), None);

    history.put(&*archive, [signalled(operation("order 8", "go")), ended(EndStatus::Succeeded)]).await;
    let found = archive.run_operation(run_id(0), &id("order 8")).await.unwrap();
    assert_eq!(found.map(|applied| applied.seq), Some(4), "also when the run has ended");
}

async fn every_command_is_an_operation<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(0));
    let kinds = every_operation();
    history.put(&*archive, std::iter::once(accepted()).chain(kinds.clone())).await;
    for (kind, seq) in kinds.iter().zip(2..) {
        let operation = kind.operation().expect("each carries one");
        let found = archive.run_operation(run_id(0), &operation.id).await.unwrap();
        assert_eq!(found, Some(AppliedOperation { seq, command: operation.command }), "{}", kind.name());
    }
}

async fn operations_outlive_a_restart_and_go_with_their_run<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let sent = operation("order 7", "go");
    let kinds = [accepted(), signalled(sent.clone()), ended(EndStatus::Succeeded)];
    History::of(run_id(0)).put(&*archive, kinds).await;
    drop(archive);
    let archive = backend.open(&location).await;
    assert!(archive.run_operation(run_id(0), &sent.id).await.unwrap().is_some());
    let policy = RetentionPolicy { keep_for: Some(Duration::from_secs(1)), ..RetentionPolicy::default() };
    assert_eq!(archive.retain(&policy, at(1_000), 10).await.unwrap(), 1);
    assert_eq!(archive.run_operation(run_id(0), &sent.id).await.unwrap(), None);
}
