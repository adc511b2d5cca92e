//! Taking runs in: durable before the answer, once for a key, in line for a concurrency key.

use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, Concurrency, Idempotency, Refusal, RunStatus};
use switchyard_core::yard::{Acceptance, Command, NewRun};
use switchyard_core::{Hash, Payload};
use switchyard_store::StoreError;

use crate::{Backend, Place};

pub async fn all(backend: &dyn Backend) {
    what_is_accepted_is_archived(&backend.open().await).await;
    one_key_one_run(&backend.open().await).await;
    unknown_graphs_are_refused(&backend.open().await).await;
    a_concurrency_key_lets_runs_in_one_by_one(&backend.open().await).await;
    a_run_that_leaves_the_line_lets_nobody_past(&backend.open().await).await;
    a_raised_limit_lets_in_those_who_wait(&backend.open().await).await;
    one_tenants_thousand_runs_do_not_delay_anothers(&backend.open().await).await;
}

async fn what_is_accepted_is_archived(place: &Place) {
    let run = place.start(&Sketch::chain(1)).await;
    let record = place.archive.run(run).await.expect("answered").expect("archived with the answer");
    assert_eq!(record.status, RunStatus::Running);
}

async fn one_key_one_run(place: &Place) {
    let plain = place.plain(&Sketch::chain(1)).await;
    let keyed = |body: &[u8]| NewRun {
        id: place.fresh_run(),
        accepted: Accepted {
            idempotency: Some(Idempotency { key: "order-7".into(), body: Hash::of(body) }),
            ..plain.clone()
        },
    };
    let first = place.hot.accept(keyed(b"a")).await.expect("accepted");
    let again = place.hot.accept(keyed(b"a")).await.expect("answered");
    assert_eq!(again, Acceptance::Existing(first.run()));
    let misused = place.hot.accept(keyed(b"b")).await;
    let refusal = Refusal::KeyReused { key: "order-7".into(), run: first.run() };
    assert_eq!(misused, Err(StoreError::Refused(refusal)));
    assert_eq!(place.claim(10).await.len(), 1, "one run, one token");
}

async fn unknown_graphs_are_refused(place: &Place) {
    let accepted = Accepted::plain("x".into(), Hash::of(b"never learnt"), Payload::null());
    let id = place.fresh_run();
    let answer = place.hot.accept(NewRun { id, accepted }).await;
    assert!(matches!(answer, Err(StoreError::Refused(Refusal::UnknownDefinition(_)))), "{answer:?}");
    assert_eq!(place.archive.run(id).await, Ok(None));
}

async fn limited(place: &Place) -> Accepted {
    of_tenant(place, "tenant", 1).await
}

async fn of_tenant(place: &Place, key: &str, limit: u32) -> Accepted {
    let concurrency = Some(Concurrency { key: key.into(), limit });
    Accepted { concurrency, ..place.plain(&Sketch::chain(1)).await }
}

async fn a_concurrency_key_lets_runs_in_one_by_one(place: &Place) {
    let accepted = limited(place).await;
    let first = place.start_as(accepted.clone()).await;
    let second = place.start_as(accepted.clone()).await;
    let third = place.start_as(accepted).await;
    let other = place.start(&Sketch::chain(1)).await;
    assert_eq!(place.state(second).await.status(), RunStatus::Queued);
    let tasks = place.claim(10).await;
    assert_eq!(tasks.iter().map(|task| task.run).collect::<Vec<_>>(), [first, other]);
    for expected in [second, third] {
        let held: Vec<_> = tasks.iter().filter(|task| task.run == first).collect();
        if expected == second {
            place.succeed(held[0]).await;
        }
        let next = place.claim_node("n0").await;
        assert_eq!(next.run, expected);
        place.succeed(&next).await;
        place.ended(expected, RunStatus::Succeeded).await;
    }
}

async fn a_run_that_leaves_the_line_lets_nobody_past(place: &Place) {
    let accepted = limited(place).await;
    let first = place.start_as(accepted.clone()).await;
    let second = place.start_as(accepted.clone()).await;
    let third = place.start_as(accepted).await;
    let cancel = Command::Cancel { by: "me".into(), reason: "".into(), compensate: true, now: false };
    place.command(second, cancel).await.expect("cancelled");
    place.ended(second, RunStatus::Cancelled).await;
    assert_eq!(place.state(third).await.status(), RunStatus::Queued);
    let task = place.claim_node("n0").await;
    assert_eq!(task.run, first);
    place.succeed(&task).await;
    assert_eq!(place.state(third).await.status(), RunStatus::Running);
}

async fn a_raised_limit_lets_in_those_who_wait(place: &Place) {
    let accepted = of_tenant(place, "tenant", 1).await;
    let first = place.start_as(accepted.clone()).await;
    let second = place.start_as(accepted).await;
    let third = place.start_as(of_tenant(place, "tenant", 3).await).await;
    let claimed: Vec<_> = place.claim(10).await.iter().map(|task| task.run).collect();
    assert_eq!(claimed, [first, second, third]);
}

/// A tenant's runs stand in its own line, not in the queues that everybody shares.
async fn one_tenants_thousand_runs_do_not_delay_anothers(place: &Place) {
    let busy = of_tenant(place, "busy", 2).await;
    for _ in 0..1_000 {
        place.start_as(busy.clone()).await;
    }
    let calm = place.start_as(of_tenant(place, "calm", 2).await).await;
    let claimed: Vec<_> = place.claim(3).await.iter().map(|task| task.run).collect();
    assert_eq!(claimed.len(), 3);
    assert_eq!(claimed[2], calm, "two of the busy tenant's are before it, and no more");
}
