//! Tests that need a server: it stops and returns, is shared, or has a newer schema than the program.

use std::time::Duration;

use futures::future::join_all;
use switchyard_archive_postgres::{Options, PostgresArchive, PostgresCas, Target, migrate};
use switchyard_conformance::archive::fixtures::{
    History, acceptance, accepted, accepted_as, accepted_with_key, approval_request, at, node_started,
    node_succeeded, run_id,
};
use switchyard_core::run::{Accepted, EventKind, WaitFor};
use switchyard_core::{ApprovalId, Hash, OperationId, Payload};
use switchyard_store::{
    Approvals, Cas, Definitions, Journal, Mutation, Operations, Registry, ResultCache, RunFilter, RunIndex,
    StoreError, Unfinished,
};
use switchyard_test_servers::postgres::{self, Postgres, Sync};
use tokio_postgres::NoTls;

fn somewhere() -> Target {
    let server: Target = postgres::shared().url().parse().unwrap();
    server.with_schema(&postgres::fresh_schema()).unwrap()
}

async fn open(target: &Target) -> PostgresArchive {
    migrate(target).await.unwrap();
    PostgresArchive::open(target.clone()).await.unwrap()
}

/// Executes SQL on the server directly, without the archive.
async fn psql(target: &Target, sql: &str) {
    let (client, connection) = tokio_postgres::connect(&postgres::shared().url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {}; {sql}", target.schema())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_migrate_at_once_and_again() {
    let target = somewhere();
    let refused = PostgresArchive::open(target.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("has version 0") && refused.ends_with("run `switchyard migrate`"), "{refused}");
    let steps = join_all((0..8).map(|_| migrate(&target))).await;
    let steps: Vec<usize> = steps.into_iter().map(Result::unwrap).collect();
    assert_eq!(steps.iter().filter(|steps| **steps > 0).count(), 1, "one of them did it: {steps:?}");
    open(&target).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_a_newer_version_is_refused() {
    let target = somewhere();
    migrate(&target).await.unwrap();
    psql(&target, "INSERT INTO migrations (version) VALUES (99)").await;
    let migrated = migrate(&target).await.unwrap_err();
    for refused in [migrated, PostgresArchive::open(target.clone()).await.unwrap_err()] {
        let text = refused.to_string();
        assert!(text.contains("has version 99") && text.contains("use a newer switchyard"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_event_does_not_match_its_checksum() {
    let target = somewhere();
    let archive = open(&target).await;
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted(), node_started("a"), node_succeeded("a")]).await;
    psql(&target, "CREATE TABLE whole AS SELECT * FROM events").await;
    for damage in [
        "body = '{\"node_star'",
        "body = replace(body, 'worker-1', 'worker-2')",
        "at = at + 1",
        "checksum = checksum + 1",
        "checksum = -1",
    ] {
        psql(&target, &format!("UPDATE events SET {damage} WHERE seq = 2")).await;
        let refused = archive.events(history.run, 0, 10).await.unwrap_err();
        let expected = format!("event 2 of {} does not match its checksum", history.run);
        assert_eq!(refused, StoreError::Corrupt(expected), "{damage}");
        assert_eq!(archive.events(history.run, 2, 10).await.unwrap().len(), 1, "the others can be read");
        psql(&target, "TRUNCATE events; INSERT INTO events SELECT * FROM whole").await;
    }
    psql(&target, "UPDATE events SET checksum = NULL").await;
    let events = archive.events(history.run, 0, 10).await.unwrap();
    assert_eq!(events.len(), 3, "events of before there were checksums");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_a_clear_error() {
    let target: Target = "postgres://postgres@127.0.0.1:1/postgres".parse().unwrap();
    let refused = migrate(&target).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(text.starts_with("cannot connect to Postgres at 127.0.0.1:1/postgres: "), "{text}");
    assert!(text.contains("refused"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_serves_as_well() {
    let target: Target = postgres::shared().socket_url().parse().unwrap();
    let target = target.with_schema(&postgres::fresh_schema()).unwrap();
    History::of(run_id(0)).put(&open(&target).await, [accepted()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_within_patience_goes_unnoticed() {
    let mut server = Postgres::start(Sync::Off);
    let target: Target = server.url().parse().unwrap();
    migrate(&target).await.unwrap();
    let options = Options { retry_for: Duration::from_secs(60), ..Options::default() };
    let archive = PostgresArchive::open_custom(target, options).await.unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted()]).await;
    for round in 0..3 {
        if round == 1 {
            server.crash()
        } else {
            server.stop()
        }
        let ack = archive.append(history.all([node_started("a"), node_succeeded("a")]));
        server.start_again();
        ack.await.unwrap();
    }
    let events = archive.events(history.run, 0, 100).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_told_and_later_found_again() {
    let mut server = Postgres::start(Sync::Off);
    let target: Target = server.url().parse().unwrap();
    migrate(&target).await.unwrap();
    let options = Options { retry_for: Duration::from_millis(50), ..Options::default() };
    let archive = PostgresArchive::open_custom(target.clone(), options).await.unwrap();
    let cas = PostgresCas::open(target).await.unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted()]).await;
    server.stop();

    let lost = history.all([node_started("a")]);
    let refused = archive.append(lost.clone()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    assert!(refused.to_string().starts_with("cannot write to Postgres at 127.0.0.1:"), "{refused}");
    for refused in [
        archive.append(vec![]).await.unwrap_err(),
        archive.run(history.run).await.unwrap_err(),
        archive.put_definition(Hash::of(b"{}"), "{}".into()).await.unwrap_err(),
        cas.put("content".into()).await.unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    }

    server.start_again();
    let gap = archive.append(history.all([node_succeeded("a")])).await.unwrap_err();
    assert!(matches!(gap, StoreError::Corrupt(_)), "what stood on what was lost is not taken: {gap:?}");
    archive.append(lost).await.unwrap();
    assert_eq!(archive.unfinished().await.unwrap(), [Unfinished { run: history.run, last_seq: 2 }]);
    let reference = cas.put("content".into()).await.unwrap();
    assert_eq!(cas.get(reference).await.unwrap(), "content");
}

/// A paused server keeps its connections open and answers nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_paused_is_told_in_time_and_what_it_may_have_done_is_unknown() {
    let server = Postgres::start(Sync::Off);
    let target: Target = server.url().parse().unwrap();
    migrate(&target).await.unwrap();
    let options = Options {
        retry_for: Duration::from_millis(50),
        answer_max: Duration::from_millis(200),
        ..Options::default()
    };
    let archive = PostgresArchive::open_custom(target, options).await.unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted()]).await;
    // Prepared while the server answers, so that only the statement itself meets the pause.
    let next = Hash::of(b"[]");
    let cache = || archive.cache("scope", "key", Payload::null(), at(0), Duration::from_secs(1));
    cache().await.unwrap();
    server.pause();

    // The first statement is sent on the idle connection, the others find none.
    let sent = cache().await.unwrap_err();
    assert!(matches!(sent, StoreError::OutcomeUnknown(_)), "{sent:?}");
    assert!(sent.to_string().ends_with("did not answer within 200ms"), "{sent}");
    let note = || Mutation::Note(serde_json::json!(1));
    for refused in [
        archive.run(history.run).await.unwrap_err(),
        archive.run_operation(history.run, &OperationId::drawn(1)).await.unwrap_err(),
        archive.put_definition(next, "[]".into()).await.unwrap_err(),
        archive.mutate(note(), None).await.unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    }

    server.go_on();
    assert!(archive.run(history.run).await.unwrap().is_some(), "no connection is left that owes an answer");
    archive.mutate(note(), None).await.unwrap();
}

/// Every process appends the whole history, as after a recovery: in the end one copy is stored.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_append_the_same_agree() {
    let target = somewhere();
    let archives = [open(&target).await, open(&target).await, open(&target).await];
    for n in 0..20 {
        let mut history = History::of(run_id(n));
        let steps = (0..6).flat_map(|_| [node_started("a"), node_succeeded("a")]);
        let events = history.all(std::iter::once(accepted()).chain(steps));
        let calls =
            archives.iter().flat_map(|archive| events.chunks(2).map(|call| archive.append(call.to_vec())));
        // One process may be ahead of another, but never with different events.
        for done in join_all(calls.collect::<Vec<_>>()).await {
            done.unwrap();
        }
        assert_eq!(archives[0].events(history.run, 0, 100).await.unwrap(), events);
    }
}

/// Two processes that both believe they own a run: for each seq one of them is first, and the other gets an error.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_append_different_things_do_not_mix() {
    let target = somewhere();
    let archives = [open(&target).await, open(&target).await];
    for n in 0..20 {
        let mut history = History::of(run_id(n));
        history.put(&archives[0], [accepted()]).await;
        let mine = |who: &str| {
            let mut history = history.clone();
            history.all([node_started(who), node_succeeded(who)])
        };
        let calls = [mine("ada"), mine("bob")];
        let (first, second) =
            tokio::join!(archives[0].append(calls[0].clone()), archives[1].append(calls[1].clone()));
        let winner = match (first, second) {
            (Ok(()), Err(e)) | (Err(e), Ok(()))
                if e != (StoreError::Diverged { run: history.run, seq: 2 }) =>
            {
                panic!("{e}")
            }
            (Ok(()), Err(_)) => &calls[0],
            (Err(_), Ok(())) => &calls[1],
            other => panic!("{other:?}"),
        };
        assert_eq!(archives[0].events(history.run, 1, 100).await.unwrap(), *winner);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_processes_gets_an_idempotency_key() {
    let target = somewhere();
    let archives = [open(&target).await, open(&target).await];
    for n in 0..20 {
        let body = Hash::of(b"body");
        let call = |run| vec![History::of(run_id(run)).next(accepted_with_key(&format!("key-{n}"), body))];
        let (first, second) =
            tokio::join!(archives[0].append(call(2 * n)), archives[1].append(call(2 * n + 1)));
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        let refused = first.and(second).unwrap_err();
        assert!(
            matches!(&refused, StoreError::Corrupt(what) if what.contains("another run has")),
            "{refused:?}"
        );
    }
    let all = RunFilter { limit: 100, ..RunFilter::default() };
    assert_eq!(archives[0].runs(&all).await.unwrap().items.len(), 20);
}

/// Postgres takes every character but one.
#[tokio::test(flavor = "multi_thread")]
async fn every_character_survives() {
    let archive = open(&somewhere()).await;
    let odd = "nul \0, its stand-in \u{fdd0}0, \u{10ffff}, \"\\u0000\"";
    let mut request = approval_request(odd);
    request.prompt = Some(odd.into());
    let first = accepted_as(Accepted {
        workflow: odd.into(),
        input: Payload::from_value(&serde_json::json!({ odd: odd })),
        idempotency: Some(switchyard_core::run::Idempotency { key: odd.into(), body: Hash::of(b"") }),
        ..acceptance()
    });
    let asked = EventKind::NodeWaiting { node: odd.into(), on: WaitFor::Approval(Box::new(request)) };
    let mut history = History::of(run_id(0));
    let events = history.all([first, asked]);
    archive.append(events.clone()).await.unwrap();
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap(), events);
    assert_eq!(&*archive.run(history.run).await.unwrap().unwrap().workflow, odd);
    assert!(archive.by_idempotency_key(odd).await.unwrap().is_some());
    let approval = archive.approval(&ApprovalId::new(odd)).await.unwrap().unwrap();
    assert_eq!((&*approval.node, approval.prompt.as_deref()), (odd, Some(odd)));
    archive.register_workflow(odd, Hash::of(b""), at(1)).await.unwrap();
    assert_eq!(archive.workflows().await.unwrap()[0].name, odd);
    archive.cache(odd, odd, Payload::null(), at(1), Duration::from_secs(9)).await.unwrap();
    assert!(archive.cached(odd, odd, at(2)).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_is_put_again_is_young_again() {
    let target = somewhere();
    migrate(&target).await.unwrap();
    let cas = PostgresCas::open(target.clone()).await.unwrap();
    let (kept, left) = (cas.put("kept".into()).await.unwrap(), cas.put("left".into()).await.unwrap());
    psql(&target, "UPDATE payloads SET put_at = now() - interval '2 hours'").await;
    cas.put("kept".into()).await.unwrap();
    let hour = Duration::from_secs(3600);
    assert_eq!(cas.aged(hour, None, 10).await.unwrap(), [left.hash]);
    assert!(!cas.remove(kept.hash, hour).await.unwrap());
    assert!(cas.remove(left.hash, hour).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_payload_is_refused() {
    let target = somewhere();
    migrate(&target).await.unwrap();
    let cas = PostgresCas::open(target.clone()).await.unwrap();
    let reference = cas.put("content".into()).await.unwrap();
    psql(&target, "UPDATE payloads SET content = 'c0ntent'").await;
    let damaged = cas.get(reference).await.unwrap_err();
    assert!(
        matches!(&damaged, StoreError::Corrupt(what) if what.contains(&reference.to_string())),
        "{damaged:?}"
    );
}
