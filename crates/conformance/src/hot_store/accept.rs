//! Accepting runs: durable before the answer, once for an idempotency key, queued for a concurrency key.

use switchyard_core::in_flight::{Acceptance, Command, NewRun};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, Concurrency, Idempotency, Refusal, RunStatus};
use switchyard_core::{Hash, Payload};
use switchyard_store::StoreError;

use crate::hot_store::{Backend, Fixture};

pub async fn all(backend: &dyn Backend) {
    what_is_accepted_is_archived(&backend.open().await).await;
    one_key_one_run(&backend.open().await).await;
    unknown_graphs_are_refused(&backend.open().await).await;
    a_concurrency_key_lets_runs_in_one_by_one(&backend.open().await).await;
    a_run_that_leaves_the_line_lets_nobody_past(&backend.open().await).await;
    a_raised_limit_lets_in_those_who_wait(&backend.open().await).await;
    one_tenants_thousand_runs_do_not_delay_anothers(&backend.open().await).await;
}

async fn what_is_accepted_is_archived(fixture: &Fixture) {
    let run = fixture.start(&Sketch::chain(1)).await;
    let record = fixture.archive.run(run).await.expect("answered").expect("archived with the answer");
    assert_eq!(record.status, RunStatus::Running);
}

async fn one_key_one_run(fixture: &Fixture) {
    let plain = fixture.plain(&Sketch::chain(1)).await;
    let keyed = |body: &[u8]| NewRun {
        id: fixture.fresh_run(),
        accepted: Accepted {
            idempotency: Some(Idempotency { key: "order-7".into(), body: Hash::of(body) }),
            ..plain.clone()
        },
    };
    let first = fixture.hot.accept(keyed(b"a")).await.expect("accepted");
    let again = fixture.hot.accept(keyed(b"a")).await.expect("answered");
    assert_eq!(again, Acceptance::Existing(first.run()));
    let misused = fixture.hot.accept(keyed(b"b")).await;
    let refusal = Refusal::KeyReused { key: "order-7".into(), run: first.run() };
    assert_eq!(misused, Err(StoreError::Refused(refusal)));
    assert_eq!(fixture.claim(10).await.len(), 1, "one run, one token");
}

async fn unknown_graphs_are_refused(fixture: &Fixture) {
    let accepted = Accepted::plain("x".into(), Hash::of(b"never learnt"), Payload::null());
    let id = fixture.fresh_run();
    let answer = fixture.hot.accept(NewRun { id, accepted }).await;
    assert!(matches!(answer, Err(StoreError::Refused(Refusal::UnknownDefinition(_)))), "{answer:?}");
    assert_eq!(fixture.archive.run(id).await, Ok(None));
}

async fn limited(fixture: &Fixture) -> Accepted {
    of_tenant(fixture, "tenant", 1).await
}

async fn of_tenant(fixture: &Fixture, key: &str, limit: u32) -> Accepted {
    let concurrency = Some(Concurrency { key: key.into(), limit });
    Accepted { concurrency, ..fixture.plain(&Sketch::chain(1)).await }
}

async fn a_concurrency_key_lets_runs_in_one_by_one(fixture: &Fixture) {
    let accepted = limited(fixture).await;
    let first = fixture.start_as(accepted.clone()).await;
    let second = fixture.start_as(accepted.clone()).await;
    let third = fixture.start_as(accepted).await;
    let other = fixture.start(&Sketch::chain(1)).await;
    assert_eq!(fixture.state(second).await.status(), RunStatus::Queued);
    let tasks = fixture.claim(10).await;
    assert_eq!(tasks.iter().map(|task| task.run).collect::<Vec<_>>(), [first, other]);
    for expected in [second, third] {
        let held: Vec<_> = tasks.iter().filter(|task| task.run == first).collect();
        if expected == second {
            fixture.succeed(held[0]).await;
        }
        let next = fixture.claim_node("n0").await;
        assert_eq!(next.run, expected);
        fixture.succeed(&next).await;
        fixture.ended(expected, RunStatus::Succeeded).await;
    }
}

async fn a_run_that_leaves_the_line_lets_nobody_past(fixture: &Fixture) {
    let accepted = limited(fixture).await;
    let first = fixture.start_as(accepted.clone()).await;
    let second = fixture.start_as(accepted.clone()).await;
    let third = fixture.start_as(accepted).await;
    let cancel = Command::Cancel { by: "me".into(), reason: "".into(), compensate: true, now: false };
    fixture.command(second, cancel).await.expect("cancelled");
    fixture.ended(second, RunStatus::Cancelled).await;
    assert_eq!(fixture.state(third).await.status(), RunStatus::Queued);
    let task = fixture.claim_node("n0").await;
    assert_eq!(task.run, first);
    fixture.succeed(&task).await;
    assert_eq!(fixture.state(third).await.status(), RunStatus::Running);
}

async fn a_raised_limit_lets_in_those_who_wait(fixture: &Fixture) {
    let accepted = of_tenant(fixture, "tenant", 1).await;
    let first = fixture.start_as(accepted.clone()).await;
    let second = fixture.start_as(accepted).await;
    let third = fixture.start_as(of_tenant(fixture, "tenant", 3).await).await;
    let claimed: Vec<_> = fixture.claim(10).await.iter().map(|task| task.run).collect();
    assert_eq!(claimed, [first, second, third]);
}

/// A tenant's runs wait for its own concurrency key, not in the shared queues.
async fn one_tenants_thousand_runs_do_not_delay_anothers(fixture: &Fixture) {
    let busy = of_tenant(fixture, "busy", 2).await;
    for _ in 0..1_000 {
        fixture.start_as(busy.clone()).await;
    }
    let calm = fixture.start_as(of_tenant(fixture, "calm", 2).await).await;
    let claimed: Vec<_> = fixture.claim(3).await.iter().map(|task| task.run).collect();
    assert_eq!(claimed.len(), 3);
    assert_eq!(claimed[2], calm, "two of the busy tenant's are before it, and no more");
}
