//! A Redis belongs to one archive. Processes refuse another archive, and an earlier state of the same one, until an
//! operator decides.

use crate::fixture::{Fixture, assert_try_later};

/// Another schema in the same database is another archive.
const OTHER: &str = "?schema=other";

#[tokio::test]
async fn another_database_is_refused_until_a_person_gives_the_redis_to_it() {
    let mut fixture = Fixture::start();
    let run = fixture.submitted().await;
    fixture.until_at(&run, "first", "waiting").await;
    let other = format!("{}{OTHER}", fixture.postgres.url());
    let of_other = [("SWITCHYARD_POSTGRES", other.as_str())];

    let (code, said) = fixture.switchyard(&["api", "--listen", "127.0.0.1:0"], &of_other);
    assert_eq!(code, Some(3), "{said}");
    for part in [
        "belongs to archive arc_",
        "schema `switchyard`",
        "schema `other`",
        "SWITCHYARD_REDIS_PREFIX",
        "redis rebuild",
    ] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let (code, said) = fixture.switchyard(&["doctor"], &of_other);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("failed   redis archive"), "{said}");
    let (code, said) = fixture.switchyard(&["redis", "rebuild", "--yes"], &of_other);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("workers are alive on this Redis"), "{said}");
    fixture.signal(&run, "first").await;
    fixture.signal(&run, "second").await;
    fixture.until(&run, |view| view["status"] == "succeeded").await;
    let waits = fixture.submitted().await;
    fixture.until_at(&waits, "first", "waiting").await;
    fixture.assert_all_run();

    fixture.stop_all();
    let (code, said) = fixture.switchyard(&["redis", "rebuild"], &of_other);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it holds 1 runs") && said.contains("nothing was changed"), "{said}");
    let (code, said) = fixture.switchyard(&["redis", "rebuild", "--yes"], &of_other);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = fixture.switchyard(&["worker"], &[]);
    assert_eq!(code, Some(3), "the former archive is the other one now: {said}");
    let (code, said) = fixture.switchyard(&["redis", "rebuild", "--yes"], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 runs rebuilt"), "{said}");
    fixture.start_again();
    fixture.until_at(&waits, "first", "waiting").await;
    fixture.signal(&waits, "first").await;
    fixture.signal(&waits, "second").await;
    fixture.until(&waits, |view| view["status"] == "succeeded").await;
    fixture.assert_whole(&waits).await;
}

#[tokio::test]
async fn a_schema_that_was_dropped_is_another_archive() {
    let mut fixture = Fixture::start();
    let run = fixture.submitted().await;
    fixture.until_at(&run, "first", "waiting").await;
    fixture.stop_all();
    fixture.postgres.psql("postgres", &["DROP SCHEMA switchyard CASCADE"]).unwrap();
    let (code, said) = fixture.switchyard(&["worker"], &[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("belongs to archive arc_"), "{said}");
}

/// The test restores a backup by replacing the database with an earlier copy.
#[tokio::test]
async fn a_postgres_that_was_restored_to_an_earlier_time_is_recognised() {
    let mut fixture = Fixture::start();
    let run = fixture.submitted().await;
    fixture.until_at(&run, "first", "waiting").await;
    fixture.stop_all();
    fixture.postgres.psql("template1", &["CREATE DATABASE backup TEMPLATE postgres"]).unwrap();
    fixture.start_again();
    fixture.signal(&run, "first").await;
    fixture.until_at(&run, "second", "waiting").await;
    let lost = fixture.submitted().await;
    fixture.until_at(&lost, "first", "waiting").await;
    fixture.stop_all();
    let restore = ["DROP DATABASE postgres", "ALTER DATABASE backup RENAME TO postgres"];
    fixture.postgres.psql("template1", &restore).unwrap();

    let (code, said) = fixture.switchyard(&["worker"], &[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("it was restored to an earlier time") && said.contains("redis rebuild"), "{said}");
    let (code, said) = fixture.switchyard(&["doctor"], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("failed   redis archive"), "{said}");
    let (code, said) = fixture.switchyard(&["redis", "rebuild", "--yes"], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 runs rebuilt"), "{said}");
    fixture.start_again();
    fixture.until_at(&run, "first", "waiting").await;
    fixture.signal(&run, "first").await;
    fixture.signal(&run, "second").await;
    fixture.until(&run, |view| view["status"] == "succeeded").await;
    fixture.assert_whole(&run).await;
    fixture.until_gone(&lost).await;
}

/// The archive is restored while processes run: they do nothing until an operator has decided.
#[tokio::test]
async fn a_postgres_that_goes_back_under_its_processes_stops_them() {
    let mut fixture = Fixture::start();
    let run = fixture.submitted().await;
    fixture.until_at(&run, "first", "waiting").await;
    fixture.until_seen().await;
    let back = "UPDATE switchyard.archive SET position = position - 1";
    fixture.postgres.psql("postgres", &[back]).unwrap();
    fixture.until_not_ready("wrong_archive").await;
    assert_try_later(fixture.submit().await, "wrong_archive").await;
    assert_eq!(fixture.metric("switchyard_archive_bound").await, Some(0.0));
    fixture.assert_all_run();
    fixture.postgres.psql("postgres", &["UPDATE switchyard.archive SET position = position + 1"]).unwrap();
    fixture.until_ready().await;
    fixture.signal(&run, "first").await;
    fixture.signal(&run, "second").await;
    fixture.until(&run, |view| view["status"] == "succeeded").await;
}

/// The archive answers, but accepts no writes.
#[tokio::test]
async fn an_outbox_that_is_stuck_is_told_with_the_reason() {
    let mut fixture = Fixture::with(&[("SWITCHYARD_STORES_STUCK_AFTER", "1s")]);
    let workflow = serde_json::json!({
        "name": "nap",
        "nodes": { "nap": { "type": "sleep", "duration": "1s" }, "after": { "type": "transform", "needs": ["nap"], "value": 1 } },
    });
    let run = fixture.submitted_with(&workflow, &serde_json::json!({})).await;
    let refuse = [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'the disk of the test is full' USING ERRCODE = '53100'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON switchyard.events EXECUTE FUNCTION refuse()",
    ];
    fixture.postgres.psql("postgres", &refuse).unwrap();
    fixture.until_not_ready("outbox_stuck").await;
    assert_eq!(fixture.metric("switchyard_archive_stuck").await, Some(1.0));
    let (code, said) = fixture.switchyard(&["doctor"], &[("SWITCHYARD_STORES_STUCK_AFTER", "1s")]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("failed   redis outbox") && said.contains("the disk of the test is full"),
        "{said}"
    );
    fixture.assert_all_run();
    fixture.postgres.psql("postgres", &["DROP TRIGGER refuse ON switchyard.events"]).unwrap();
    fixture.until_ready().await;
    fixture.until(&run, |view| view["status"] == "succeeded").await;
    assert_eq!(fixture.metric("switchyard_archive_stuck").await, Some(0.0));
}

/// Two data folders on one Redis: the second `up` reports it and exits.
#[tokio::test]
async fn two_data_folders_do_not_share_a_redis_by_accident() {
    let fixture = Fixture::start();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let url = fixture.redis.url();
    let args = ["up", "--redis", &url, "--data", &data, "--listen", "127.0.0.1:0"];
    let (code, said) = fixture.switchyard_without_postgres(&args);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("belongs to archive arc_") && said.contains(&data), "{said}");
}
