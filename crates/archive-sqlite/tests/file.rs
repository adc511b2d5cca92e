//! The database file: when it is refused, what it contains, and which files remain after closing.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use switchyard_archive_sqlite::SqliteArchive;
use switchyard_conformance::archive::fixtures::{
    self, History, acceptance, accepted, accepted_as, at, ended, node_failed, node_started, node_succeeded,
    run_id,
};
use switchyard_core::error::NodeError;
use switchyard_core::run::{Accepted, EndStatus, EventKind};
use switchyard_core::{CasRef, Hash, Payload};
use switchyard_store::{
    Access, DeadLetter, DeadLetters, Journal, PayloadHolders, ResultCache, RunIndex, StoreError,
};
use tempfile::TempDir;

/// Undoes the migrations after `0010_run_operations.sql`, so that they can run again.
const WITHOUT_LATER_STEPS: &str = "
    DROP TABLE schedule_starts; DROP TABLE bulk_results; DROP TABLE bulk_jobs; DROP TABLE tombstones;
    DROP TABLE run_labels; DROP INDEX runs_by_schedule; DROP INDEX runs_by_error_code; DROP INDEX runs_by_error_node;
    DROP INDEX runs_with_error; ALTER TABLE runs DROP COLUMN parent_node; ALTER TABLE runs DROP COLUMN schedule;
    ALTER TABLE runs DROP COLUMN error_node; ALTER TABLE runs DROP COLUMN error_code;";

fn somewhere() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("switchyard.db");
    (dir, path)
}

#[test]
fn a_file_of_a_newer_version_is_refused() {
    let (_dir, path) = somewhere();
    drop(SqliteArchive::open(&path).unwrap());
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    for refused in
        [SqliteArchive::open(&path).unwrap_err(), SqliteArchive::open_read_only(&path).unwrap_err()]
    {
        let text = refused.to_string();
        assert!(text.contains("has schema version 99") && text.contains("use a newer switchyard"), "{text}");
    }
}

#[test]
fn another_programs_file_is_left_alone() {
    let (_dir, path) = somewhere();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let refused = SqliteArchive::open(&path).unwrap_err().to_string();
    assert!(refused.ends_with("is a SQLite file, but not a Switchyard archive"), "{refused}");

    fs::write(&path, "just some text, long enough to be looked at as a database header").unwrap();
    let refused = SqliteArchive::open(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
    assert!(refused.to_string().ends_with("switchyard.db: file is not a database"), "{refused}");
}

#[test]
fn opening_for_reading_makes_nothing() {
    let (_dir, path) = somewhere();
    SqliteArchive::open_read_only(&path).unwrap_err();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_damaged_event_is_named() {
    let (_dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted(), node_started("a"), node_succeeded("a")]).await;
    drop(archive);
    let conn = Connection::open(&path).unwrap();
    conn.execute("CREATE TEMP TABLE whole AS SELECT at, body, checksum FROM events WHERE seq = 2", [])
        .unwrap();
    for damage in [
        "body = '{\"node_star'",
        "body = replace(body, 'worker-1', 'worker-2')",
        "body = CAST(x'7bff7d' AS TEXT)",
        "at = at + 1",
        "at = 'soon'",
        "checksum = checksum + 1",
        "checksum = -1",
    ] {
        conn.execute(&format!("UPDATE events SET {damage} WHERE seq = 2"), []).unwrap();
        let archive = SqliteArchive::open_read_only(&path).unwrap();
        let refused = archive.events(history.run, 0, 10).await.unwrap_err();
        assert!(matches!(refused, StoreError::Corrupt(_)), "{damage}: {refused:?}");
        if !damage.contains("soon") {
            let named = format!("event 2 of {}", history.run);
            assert!(refused.to_string().contains(&named), "{damage}: {refused}");
        }
        assert_eq!(archive.events(history.run, 2, 10).await.unwrap().len(), 1, "the others can be read");
        conn.execute(
            "UPDATE events SET at = w.at, body = w.body, checksum = w.checksum FROM whole AS w WHERE seq = 2",
            [],
        )
        .unwrap();
    }
    conn.execute("UPDATE events SET checksum = NULL", []).unwrap();
    let archive = SqliteArchive::open_read_only(&path).unwrap();
    let events = archive.events(history.run, 0, 10).await.unwrap();
    assert_eq!(events.len(), 3, "events of before there were checksums");
}

#[tokio::test]
async fn people_can_read_the_history() {
    let (_dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted(), node_started("fetch")]).await;
    let line: String = Connection::open(&path)
        .unwrap()
        .query_row(
            "SELECT concat_ws('|', run, seq, at, kind, body) FROM history WHERE run = ?1 AND seq = 2",
            [history.run.to_string()],
            |row| row.get(0),
        )
        .unwrap();
    let body = r#"{"node_started":{"node":"fetch","attempt":1,"claim":1,"worker":"worker-1"}}"#;
    assert_eq!(line, format!("{}|2|2023-11-14T22:13:22.000Z|node_started|{body}", history.run));
}

#[tokio::test]
async fn dropping_the_last_handle_finishes_what_was_handed_over() {
    let (dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    archive.unfinished().await.unwrap();
    let acks: Vec<_> =
        (0..2_000).map(|n| archive.append(vec![History::of(run_id(n)).next(accepted())])).collect();
    drop(archive);

    // One file without a log beside it, and the clean-shutdown marker.
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["switchyard.db", "switchyard.db.clean"]);
    for ack in acks {
        ack.await.unwrap();
    }
    assert_eq!(SqliteArchive::open(&path).unwrap().unfinished().await.unwrap().len(), 2_000);
}

/// A file from before payload references: the migration finds the payloads in its events, and tolerates a damaged
/// event.
#[tokio::test]
async fn an_older_file_learns_which_payloads_it_mentions() {
    let (_dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    let large = |name: &[u8]| Payload::Cas(CasRef { hash: Hash::of(name), bytes: 70_000 });
    let succeeded = EventKind::NodeSucceeded { node: "a".into(), output: large(b"output"), cached: false };
    let input = accepted_as(Accepted { input: large(b"input"), ..acceptance() });
    let mut history = History::of(run_id(0));
    history.put(&archive, [input, succeeded, node_started("b")]).await;
    archive.cache("save", "k", large(b"cached"), at(0), Duration::from_secs(60)).await.unwrap();
    drop(archive);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(WITHOUT_LATER_STEPS).unwrap();
    conn.execute_batch(
        "ALTER TABLE events DROP COLUMN checksum;
         DROP TABLE run_operations; DROP TABLE operations; DROP TABLE archive; DROP TABLE dead_letters; DROP TABLE payload_refs; DROP INDEX runs_by_parent; DROP INDEX runs_by_end; PRAGMA user_version = 3;
         UPDATE events SET body = '{\"cas\":{\"node_star' WHERE seq = 3;",
    )
    .unwrap();
    drop(conn);

    let archive = SqliteArchive::open(&path).unwrap();
    let all = [&b"input"[..], b"output", b"cached", b"unknown"].map(Hash::of);
    let held = archive.held_payloads(&all, at(1)).await.unwrap();
    assert_eq!(held, HashSet::from([all[0], all[1], all[2]]));
}

/// A file from before dead letters: the migration finds them in its events, except for nodes that started over.
#[tokio::test]
async fn an_older_file_learns_which_nodes_were_given_up() {
    let (_dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    let poisoned = || {
        let error = NodeError::permanent("poisoned", "10 workers were lost while they held it");
        EventKind::NodeFailed { node: "a".into(), attempt: 1, error }
    };
    let (mut given_up, mut retried) = (History::of(run_id(0)), History::of(run_id(1)));
    given_up.put(&archive, [accepted(), poisoned(), node_failed("b")]).await;
    retried.put(&archive, [accepted(), poisoned(), ended(EndStatus::Failed), fixtures::retried()]).await;
    let letter = DeadLetter::of(&History { seq: 1, ..given_up }.next(poisoned())).unwrap();
    let expected = archive.dead_letter(&letter.id).await.unwrap().unwrap();
    drop(archive);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(WITHOUT_LATER_STEPS).unwrap();
    conn.execute_batch(
        "ALTER TABLE events DROP COLUMN checksum; DROP TABLE run_operations; DROP TABLE operations; DROP TABLE archive; DROP TABLE dead_letters; PRAGMA user_version = 4;",
    )
    .unwrap();
    drop(conn);

    let archive = SqliteArchive::open(&path).unwrap();
    assert_eq!(archive.dead_letters(10).await.unwrap(), [expected]);
}

/// The log marks the last page of each transaction; every transaction is one sync.
fn transactions_in_log(log: &[u8]) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    log[HEADER..].chunks_exact(FRAME).filter(|frame| frame[4..8] != [0; 4]).count()
}

#[tokio::test]
async fn what_waits_shares_one_commit() {
    let (dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    // Keeps the writer busy while the small appends arrive.
    let mut large = History::of(run_id(0));
    let kinds = std::iter::once(accepted()).chain((0..5_000).map(|_| node_started("step")));
    let mut acks = vec![archive.append(large.all(kinds))];
    acks.extend((1..=1_000).map(|n| archive.append(vec![History::of(run_id(n)).next(accepted())])));
    for ack in acks {
        ack.await.unwrap();
    }
    let commits = transactions_in_log(&fs::read(dir.path().join("switchyard.db-wal")).unwrap());
    assert!((2..100).contains(&commits), "1,001 appends took {commits} commits");
}

#[tokio::test]
async fn a_file_from_before_there_were_keys_is_brought_on() {
    let (_dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted(), node_started("a")]).await;
    drop(archive);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(WITHOUT_LATER_STEPS).unwrap();
    conn.execute_batch(
        "ALTER TABLE events DROP COLUMN checksum;
         DROP TABLE run_operations; DROP TABLE operations; DROP TABLE archive; DROP TABLE api_keys; DROP TABLE dead_letters; DROP TABLE payload_refs; DROP INDEX runs_by_parent; DROP INDEX runs_by_end;
         PRAGMA user_version = 2;",
    )
    .unwrap();
    drop(conn);

    let refused = SqliteArchive::open_read_only(&path).unwrap_err().to_string();
    assert!(refused.contains("has schema version 2"), "{refused}");
    let archive = SqliteArchive::open(&path).unwrap();
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap().len(), 2);
    assert!(archive.api_keys().await.unwrap().is_empty());
}

/// A file from before archive ids gets an id, and keeps it.
#[tokio::test]
async fn an_older_file_is_given_an_id() {
    let (_dir, path) = somewhere();
    let archive = SqliteArchive::open(&path).unwrap();
    let mut history = History::of(run_id(0));
    history.put(&archive, [accepted(), node_started("a")]).await;
    drop(archive);
    let conn = Connection::open(&path).unwrap();
    let before = "ALTER TABLE events DROP COLUMN checksum; DROP TABLE run_operations; DROP TABLE operations; DROP TABLE archive; ALTER TABLE dead_letters DROP COLUMN excerpt; PRAGMA user_version = 5;";
    conn.execute_batch(WITHOUT_LATER_STEPS).unwrap();
    conn.execute_batch(before).unwrap();
    drop(conn);

    let mark = SqliteArchive::open(&path).unwrap().mark().await.unwrap();
    let archive = SqliteArchive::open(&path).unwrap();
    assert_eq!(archive.mark().await.unwrap(), mark);
    assert_eq!(archive.events(history.run, 0, 10).await.unwrap().len(), 2);
}
