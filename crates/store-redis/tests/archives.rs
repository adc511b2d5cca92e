//! Tests that a Redis belongs to one archive: another archive, or an earlier state of the same, is refused until a
//! person decides.

use std::path::Path;
use std::sync::Arc;

use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::NewRun;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::Accepted;
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{Archive, HotStore, Mismatch, StoreError};
use switchyard_store_redis::{RedisAdmin, RedisSettings, RedisStore};
use switchyard_test_servers::redis::{self, Redis};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Opens the archive of a folder. Retries because the listener of a dropped store releases the folder a little later.
async fn archive(folder: &Path) -> Arc<dyn Archive> {
    loop {
        match DataFolder::open(folder).and_then(|data| data.archive()) {
            Err(StoreError::InUse { .. }) => tokio::task::yield_now().await,
            opened => return Arc::new(opened.expect("an archive")),
        }
    }
}

async fn open(settings: &RedisSettings, folder: &Path) -> Result<RedisStore, StoreError> {
    RedisStore::open(settings.clone(), archive(folder).await).await
}

fn private() -> RedisSettings {
    RedisSettings { prefix: redis::fresh_prefix(), ..RedisSettings::new(redis::shared().url()) }
}

fn cli<T: ::redis::FromRedisValue>(settings: &RedisSettings, command: &[&str]) -> T {
    let client = ::redis::Client::open(settings.url.as_str()).expect("an address");
    let mut connection = client.get_connection().expect("Redis answers");
    let (name, words) = command.split_first().expect("a command");
    ::redis::cmd(name).arg(words).query(&mut connection).expect("answered")
}

async fn accept(store: &RedisStore, serial: u64) -> Result<RunId, StoreError> {
    let ir = Sketch::chain(1).ir();
    store.learn(ir.clone()).await?;
    let id = RunId::new(Timestamp::from_millis(1_700_000_000_000), serial, 0);
    let accepted = Accepted::plain("w".into(), ir.hash, Payload::null());
    store.accept(NewRun { id, accepted }).await.map(|_| id)
}

fn mismatch(error: StoreError) -> Mismatch {
    match error {
        StoreError::Mismatched(mismatch) => *mismatch,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn another_archive_is_refused_and_both_are_named() {
    let (settings, one, other) = (private(), folder(), folder());
    let store = open(&settings, one.path()).await.expect("the first one gets it");
    let refused = open(&settings, other.path()).await.expect_err("it belongs to another archive");
    let said = refused.to_string();
    let Mismatch::OtherArchive { id, location, ours, .. } = mismatch(refused) else { panic!("{said}") };
    let theirs = archive_mark(&store).await;
    assert_eq!((&*id, &*location), (&*theirs.0, &*theirs.1));
    assert_ne!(id, ours.id);
    for part in [&*id, &*ours.id, &one.path().display().to_string(), &other.path().display().to_string()] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let apart = RedisSettings { prefix: redis::fresh_prefix(), ..settings.clone() };
    open(&apart, other.path()).await.expect("another prefix is another place");
    drop(store);
    open(&settings, one.path()).await.expect("its own archive is welcome again");
}

async fn archive_mark(store: &RedisStore) -> (String, String) {
    let bound = store.admin().bound().await.expect("answered").expect("it belongs to one");
    (bound.id, bound.location)
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
}

#[tokio::test]
async fn a_restored_backup_is_told_from_what_it_was_made_of() {
    let (settings, live, backup) = (private(), folder(), folder());
    let store = open(&settings, live.path()).await.expect("opened");
    accept(&store, 1).await.expect("accepted");
    drop(store);
    copy(live.path(), backup.path());
    let store = open(&settings, live.path()).await.expect("opened");
    accept(&store, 2).await.expect("accepted");
    drop(store);
    drop(open(&settings, live.path()).await.expect("Redis sees how far it has come"));

    let refused = mismatch(open(&settings, backup.path()).await.expect_err("it is behind"));
    let Mismatch::WentBack { known, ours, .. } = &refused else { panic!("{refused}") };
    assert!(ours.position < *known, "{refused}");
    assert!(refused.to_string().contains("restored to an earlier time"), "{refused}");
    let admin = RedisAdmin::connect(&settings.url, &settings.prefix).await.expect("Redis answers");
    let mark = archive(backup.path()).await.mark().await.expect("answered");
    let check = admin.examine_archive(&mark).await;
    assert_eq!(check.health, switchyard_store::Health::Failed, "{check:?}");
    open(&settings, live.path()).await.expect("the original is still the right one");
}

#[tokio::test]
async fn a_flushed_redis_is_told_again_whose_it_is() {
    let server = Redis::start();
    let (settings, one, other) = (RedisSettings::new(server.url()), folder(), folder());
    let store = open(&settings, one.path()).await.expect("opened");
    let before = archive_mark(&store).await;
    cli::<String>(&settings, &["FLUSHALL"]);
    store.ship().await.expect("there is nothing to ship");
    assert_eq!(archive_mark(&store).await, before);
    open(&settings, other.path()).await.expect_err("it belongs to the first one");
}

/// As if Redis was flushed and a process with another archive was faster.
#[tokio::test]
async fn a_redis_that_suddenly_belongs_to_another_archive_is_left_alone() {
    let (settings, one) = (private(), folder());
    let store = open(&settings, one.path()).await.expect("opened");
    let run = accept(&store, 1).await.expect("accepted");
    let key = store.keys().archive();
    let id: String = cli(&settings, &["HGET", &key, "id"]);
    cli::<u64>(&settings, &["HSET", &key, "id", "arc_other"]);
    mismatch(store.ship().await.expect_err("it is not shipped"));
    mismatch(store.ready().await.expect_err("it is not ready"));
    mismatch(accept(&store, 2).await.expect_err("nothing is accepted"));
    mismatch(store.in_flight(run).await.expect_err("nothing is read"));
    cli::<u64>(&settings, &["HSET", &key, "id", &id]);
    store.ship().await.expect("it is its own again");
    store.ready().await.expect("ready");
    assert!(store.in_flight(run).await.expect("answered"));
}

/// A replaced server means a new connection, on which the store asks for the archive first.
#[tokio::test]
async fn a_redis_that_is_exchanged_is_left_alone_at_once() {
    let mut server = Redis::start();
    let (settings, one, other) = (RedisSettings::new(server.url()), folder(), folder());
    let store = open(&settings, one.path()).await.expect("opened");
    accept(&store, 1).await.expect("accepted");
    server.stop();
    std::fs::remove_dir_all(server.folder().join("appendonlydir")).expect("it kept one");
    server.start_again();
    drop(open(&settings, other.path()).await.expect("it is empty"));
    let refused = loop {
        match accept(&store, 2).await {
            Err(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)) => {}
            answer => break answer.expect_err("it belongs to another archive"),
        }
    };
    mismatch(refused);
    let runs: Vec<String> = cli(&settings, &["SMEMBERS", &store.keys().runs()]);
    assert!(runs.is_empty(), "{runs:?}");
}

#[tokio::test]
async fn clearing_leaves_what_others_keep_and_what_never_comes_twice() {
    let (settings, one, other) = (private(), folder(), folder());
    let store = open(&settings, one.path()).await.expect("opened");
    accept(&store, 1).await.expect("accepted");
    store.ship().await.expect("shipped");
    let theirs = ["run:7", "worker:7", "approval:mine", "idempotency:x", "session:1"].map(|name| {
        let key = format!("{}{name}", settings.prefix);
        cli::<u64>(&settings, &["HSET", &key, "of", "another program"]);
        key
    });
    let admin = store.admin();
    let found = admin.holdings().await.expect("answered");
    assert_eq!((found.runs, found.unarchived, found.workers.len()), (1, 0, 0));
    assert!(admin.clear().await.expect("cleared") > 5);
    let mut left: Vec<String> = cli(&settings, &["KEYS", &format!("{}*", settings.prefix)]);
    left.sort_unstable();
    let mut expected: Vec<String> = theirs.to_vec();
    expected.push(format!("{}wf.lock:outbox:fence", settings.prefix));
    expected.sort_unstable();
    assert_eq!(left, expected);
    open(&settings, other.path()).await.expect("it is free");
    mismatch(store.ship().await.expect_err("the former one notices"));
}
