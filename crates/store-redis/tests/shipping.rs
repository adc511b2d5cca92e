//! Tests that one process at a time ships to the archive. A killed shipper delays the others briefly, a stopped one not
//! at all.

use std::sync::Arc;

use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::{NewRun, Want};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::Accepted;
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{Archive, HotStore};
use switchyard_store_redis::{RedisSettings, RedisStore, Shipped};
use switchyard_test_servers::redis;
use tokio_util::sync::CancellationToken;

struct World {
    _folder: tempfile::TempDir,
    archive: Arc<dyn Archive>,
    settings: RedisSettings,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = DataFolder::open(folder.path()).and_then(|data| data.archive()).expect("an archive");
        let prefix = redis::fresh_prefix();
        let settings = RedisSettings { prefix, ..RedisSettings::new(redis::shared().url()) };
        Self { _folder: folder, archive: Arc::new(archive), settings }
    }

    async fn store(&self) -> Arc<RedisStore> {
        let store = RedisStore::open(self.settings.clone(), self.archive.clone()).await;
        let store = Arc::new(store.expect("Redis answers"));
        store.learn(Sketch::chain(2).ir()).await.expect("learnt");
        store
    }

    async fn lock_lasts_ms(&self, store: &RedisStore) -> i64 {
        let client = ::redis::Client::open(self.settings.url.as_str()).expect("a URL");
        let mut connection = client.get_multiplexed_async_connection().await.expect("Redis answers");
        let mut command = ::redis::cmd("PTTL");
        command.arg(store.keys().ship_lock());
        command.query_async(&mut connection).await.expect("answered")
    }
}

/// Starts a run with an event in the outbox.
async fn claim_of_a_run(store: &RedisStore, serial: u64) -> RunId {
    let id = RunId::new(Timestamp::from_millis(1), serial, 0);
    let accepted = Accepted::plain("w".into(), Sketch::chain(2).ir().hash, Payload::null());
    store.accept(NewRun { id, accepted }).await.expect("accepted");
    let want = Want { worker: "w".into(), queues: ["work".into()].into(), max: 1, lease: None };
    assert_eq!(store.step(Vec::new(), &want).await.expect("claimed").1[0].run, id);
    id
}

async fn until_archived(store: &RedisStore, run: RunId) {
    let mut news = store.follow(run);
    news.wait_for(|change| change.seq >= 2).await.expect("the store lives");
}

const NOT_THERE: i64 = -2;

#[tokio::test]
async fn one_that_stops_ships_what_is_left_and_leaves_the_lock() {
    let world = World::new();
    let (one, other) = (world.store().await, world.store().await);
    let stop = CancellationToken::new();
    let duty = tokio::spawn(one.clone().ship_forever(stop.clone()));
    until_archived(&one, claim_of_a_run(&one, 1).await).await;
    assert_eq!(other.ship().await.expect("answered"), Shipped::NotOurTurn);
    stop.cancel();
    duty.await.expect("it ended in order");
    assert_eq!(world.lock_lasts_ms(&one).await, NOT_THERE);
    assert_eq!(other.ship().await.expect("answered"), Shipped::Events(0));
}

#[tokio::test]
async fn one_that_is_killed_is_followed_within_seconds() {
    let world = World::new();
    let (one, other) = (world.store().await, world.store().await);
    let duty = tokio::spawn(one.clone().ship_forever(CancellationToken::new()));
    until_archived(&one, claim_of_a_run(&one, 1).await).await;
    duty.abort();
    assert!(duty.await.is_err_and(|ended| ended.is_cancelled()));
    let lasts = world.lock_lasts_ms(&one).await;
    assert!((1..=3_000).contains(&lasts), "it lasts {lasts} ms");
    let stop = CancellationToken::new();
    let duty = tokio::spawn(other.clone().ship_forever(stop.clone()));
    until_archived(&other, claim_of_a_run(&other, 2).await).await;
    stop.cancel();
    duty.await.expect("it ended in order");
}
