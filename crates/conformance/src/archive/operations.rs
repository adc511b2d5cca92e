//! Changes that belong to no run: each is made once for its operation id, and a repetition gets the first answer.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use switchyard_core::run::Refusal;
use switchyard_core::{Hash, OperationId};
use switchyard_store::{
    ApiKeyRecord, DeadLetter, Mutation, MutationOutcome, OPERATIONS_KEPT, OperationRequest, Purge,
    ScheduleRecord, StoreError,
};

use crate::archive::Backend;
use crate::archive::fixtures::at;

pub async fn all<B: Backend>(backend: &B) {
    every_mutation_is_made_once_and_answers_the_same(backend).await;
    an_answer_outlives_what_it_was_about(backend).await;
    another_request_with_the_same_id_is_refused(backend).await;
    one_of_many_repetitions_at_once_makes_the_change(backend).await;
    old_operations_are_let_go(backend).await;
}

fn named(id: &str, kind: &str) -> OperationRequest {
    let id = OperationId::new(id).expect("an operation id");
    OperationRequest::new(id, kind, &json!({ "of": kind }), at(1)).expect("JSON")
}

fn schedule(cron: &str) -> ScheduleRecord {
    let schedule = serde_json::from_value(json!({
        "name": "nightly", "workflow": "report", "input": {"json": {"n": 1}}, "cron": cron, "time_zone": "UTC",
    }));
    ScheduleRecord { schedule: schedule.expect("a schedule"), next_at: Some(at(5)), last_run: None }
}

fn register(definition: &[u8]) -> Mutation {
    Mutation::RegisterWorkflow { name: "report".into(), definition: Hash::of(definition), at: at(1) }
}

fn key(id: &str) -> ApiKeyRecord {
    let digest = Hash::of(id.as_bytes());
    ApiKeyRecord { id: id.into(), name: "ci".into(), digest, created_at: at(1), revoked_at: None }
}

async fn every_mutation_is_made_once_and_answers_the_same<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    archive.bury(DeadLetter::of_signal("one", "why", at(1))).await.unwrap();
    archive.bury(DeadLetter::of_signal("two", "why", at(2))).await.unwrap();
    let mutations = [
        (register(b"1"), "register"),
        (Mutation::PutSchedule(Box::new(schedule("0 1 * * *"))), "put_schedule"),
        (Mutation::RemoveSchedule { name: "nightly".into() }, "remove_schedule"),
        (Mutation::PutApiKey(Box::new(key("a"))), "create_key"),
        (Mutation::RevokeApiKey { id: "a".into(), at: at(3) }, "revoke_key"),
        (Mutation::PurgeDeadLetters(Purge::All), "purge"),
        (Mutation::Note(json!({"run": "none"})), "note"),
    ];
    let mut first = Vec::new();
    for (mutation, kind) in &mutations {
        let operation = named(kind, kind);
        let outcome = archive.mutate(mutation.clone(), Some(&operation)).await.unwrap();
        let kept = archive.operation(&operation.id).await.unwrap().expect("it is kept");
        assert_eq!((&kept.request, &kept.outcome), (&operation, &outcome));
        first.push(outcome);
    }
    assert_eq!(
        first[2..],
        [
            MutationOutcome::Changed(true),
            MutationOutcome::ApiKey("a".into()),
            MutationOutcome::Changed(true),
            MutationOutcome::Removed(2),
            MutationOutcome::Noted(json!({"run": "none"})),
        ]
    );
    drop(archive);
    let archive = backend.open(&location).await;
    for ((mutation, kind), outcome) in mutations.into_iter().zip(first) {
        assert_eq!(archive.mutate(mutation, Some(&named(kind, kind))).await.unwrap(), outcome, "{kind}");
    }
    assert_eq!(archive.schedule("nightly").await.unwrap(), None, "it was not put again");
}

async fn an_answer_outlives_what_it_was_about<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let first = named("first", "register");
    let version = |outcome: MutationOutcome| outcome.workflow().unwrap().version;
    assert_eq!(version(archive.mutate(register(b"1"), Some(&first)).await.unwrap()), 1);
    assert_eq!(version(archive.mutate(register(b"2"), None).await.unwrap()), 2);
    assert_eq!(version(archive.mutate(register(b"1"), Some(&first)).await.unwrap()), 1);
    assert_eq!(archive.workflow("report", None).await.unwrap().unwrap().version, 2, "no third version");
}

async fn another_request_with_the_same_id_is_refused<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let put = Mutation::PutSchedule(Box::new(schedule("0 1 * * *")));
    archive.mutate(put, Some(&named("x", "put_schedule"))).await.unwrap();
    let other = OperationRequest { fingerprint: Hash::of(b"other"), ..named("x", "put_schedule") };
    for operation in [named("x", "remove_schedule"), other] {
        let remove = Mutation::RemoveSchedule { name: "nightly".into() };
        let refused = archive.mutate(remove, Some(&operation)).await.unwrap_err();
        assert_eq!(refused, StoreError::Refused(Refusal::OperationReused(operation.id)));
    }
    assert!(archive.schedule("nightly").await.unwrap().is_some());
}

async fn one_of_many_repetitions_at_once_makes_the_change<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    archive.put_api_key(key("a")).await.unwrap();
    let operation = named("x", "revoke_key");
    // Only the first call changes anything: if a repetition were executed, it would answer otherwise.
    let revoke = || archive.mutate(Mutation::RevokeApiKey { id: "a".into(), at: at(3) }, Some(&operation));
    for outcome in join_all((0..10).map(|_| revoke())).await {
        assert_eq!(outcome.unwrap(), MutationOutcome::Changed(true));
    }
}

async fn old_operations_are_let_go<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let later = at(1).plus(OPERATIONS_KEPT);
    for n in 0..3 {
        let old = named(&format!("old {n}"), "note");
        archive.mutate(Mutation::Note(json!(n)), Some(&old)).await.unwrap();
    }
    let young = OperationRequest { at: later, ..named("young", "note") };
    archive.mutate(Mutation::Note(json!(null)), Some(&young)).await.unwrap();
    assert_eq!(archive.forget_operations(at(1), 10).await.unwrap(), 0, "that moment is kept");
    let before = later.minus(Duration::from_millis(1));
    assert_eq!(archive.forget_operations(before, 2).await.unwrap(), 2);
    assert_eq!(archive.forget_operations(before, 2).await.unwrap(), 1);
    assert_eq!(archive.forget_operations(before, 2).await.unwrap(), 0);
    assert!(archive.operation(&young.id).await.unwrap().is_some());
}
