//! A key leads to the run that was accepted with it.

use switchyard_core::Hash;
use switchyard_core::run::EndStatus;
use switchyard_store::StoreError;

use crate::archive::Backend;
use crate::archive::fixtures::{History, accepted, accepted_with_key, ended, run_id};

pub async fn all<B: Backend>(backend: &B) {
    a_key_leads_to_its_run(backend).await;
    a_second_run_with_a_key_is_refused(backend).await;
}

async fn a_key_leads_to_its_run<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let body = Hash::of(b"body");
    let mut history = History::of(run_id(0));
    history.put(&*archive, [accepted_with_key("order-17", body)]).await;
    // Any number of runs has no key.
    History::of(run_id(1)).put(&*archive, [accepted()]).await;
    History::of(run_id(2)).put(&*archive, [accepted()]).await;

    assert_eq!(archive.by_idempotency_key("order-17").await.unwrap(), Some((run_id(0), body)));
    assert_eq!(archive.by_idempotency_key("order-1").await.unwrap(), None);
    assert_eq!(archive.by_idempotency_key("").await.unwrap(), None);

    history.put(&*archive, [ended(EndStatus::Succeeded)]).await;
    let found = archive.by_idempotency_key("order-17").await.unwrap();
    assert_eq!(found, Some((run_id(0), body)), "also when the run has ended");
}

/// The hot store answers a repeated key with the run that has it, so two runs with one key are a bug.
async fn a_second_run_with_a_key_is_refused<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let body = Hash::of(b"body");
    History::of(run_id(0)).put(&*archive, [accepted_with_key("order-17", body)]).await;
    let second = History::of(run_id(1)).next(accepted_with_key("order-17", body));
    let refused = archive.append(vec![second]).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Corrupt(what) if what.contains("order-17")), "{refused:?}");
    assert_eq!(archive.by_idempotency_key("order-17").await.unwrap(), Some((run_id(0), body)));
}
