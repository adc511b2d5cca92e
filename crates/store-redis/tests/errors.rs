//! Tests a Redis that answers but refuses calls: the error names each reason, nothing is changed, and afterwards the
//! same store works again.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use switchyard_archive_sqlite::DataFolder;
use switchyard_core::in_flight::NewRun;
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::Accepted;
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_observe::Observe;
use switchyard_store::{Archive, HotStore, StoreError};
use switchyard_store_redis::{RedisSettings, RedisStore};
use switchyard_test_servers::redis::Redis;
use tempfile::TempDir;

/// A store, its server, an operator's connection to the server, and the store's metrics.
struct World {
    server: Redis,
    store: RedisStore,
    archive: Arc<dyn Archive>,
    operator: MultiplexedConnection,
    observe: Observe,
    _folder: TempDir,
}

async fn operator(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a URL");
    client.get_multiplexed_async_connection().await.expect("Redis answers")
}

async fn open(url: &str, observe: &Observe, archive: Arc<dyn Archive>) -> RedisStore {
    let settings = RedisSettings { observe: observe.clone(), ..RedisSettings::new(url) };
    let store = RedisStore::open(settings, archive).await.expect("Redis answers");
    store.learn(Sketch::chain(2).ir()).await.expect("learnt");
    store
}

impl World {
    async fn new() -> Self {
        let (server, observe) = (Redis::start(), Observe::default());
        let _folder = tempfile::tempdir().expect("a folder");
        let archive = DataFolder::open(_folder.path()).and_then(|data| data.archive()).expect("an archive");
        let archive: Arc<dyn Archive> = Arc::new(archive);
        let store = open(&server.url(), &observe, archive.clone()).await;
        Self { operator: operator(&server.url()).await, server, store, archive, observe, _folder }
    }

    async fn order(&mut self, words: &str) {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        words.for_each(|word| {
            command.arg(word);
        });
        command.query_async::<redis::Value>(&mut self.operator).await.expect("the operator may do anything");
    }

    async fn accept(&self, serial: u64) -> Result<(), StoreError> {
        accept(&self.store, serial).await
    }

    /// Asserts that calls are refused for this reason, and counted under it.
    async fn assert_refused(&self, words: &str, reason: &str) {
        let error = self.accept(1).await.expect_err("it is refused");
        assert!(matches!(&error, StoreError::Unavailable(why) if why.contains(words)), "{error:?}");
        let error = self.store.ready().await.expect_err("it is not ready");
        assert!(error.to_string().contains(words), "{error}");
        let page = self.observe.metrics().page(None);
        let counted = format!("switchyard_redis_errors_total{{reason=\"{reason}\"}} ");
        assert!(page.lines().any(|line| line.starts_with(&counted)), "{counted} is not in\n{page}");
        assert!(page.lines().any(|line| line == "switchyard_redis_up 0"), "{page}");
    }

    /// Asserts that the store works again: the refused run does not exist, and can be accepted now.
    async fn assert_goes_on(&self) {
        self.store.ready().await.expect("it is ready");
        assert_eq!(self.store.size().await.expect("answered").runs, 0);
        self.accept(1).await.expect("accepted");
        let page = self.observe.metrics().page(None);
        assert!(page.lines().any(|line| line == "switchyard_redis_up 1"), "{page}");
    }
}

async fn accept(store: &RedisStore, serial: u64) -> Result<(), StoreError> {
    let id = RunId::new(Timestamp::from_millis(1), serial, 0);
    let accepted = Accepted::plain("w".into(), Sketch::chain(2).ir().hash, Payload::null());
    store.accept(NewRun { id, accepted }).await.map(drop)
}

#[tokio::test]
async fn a_full_server() {
    let mut world = World::new().await;
    world.order("CONFIG SET maxmemory 1").await;
    world.assert_refused("has no memory left", "full").await;
    world.order("CONFIG SET maxmemory 0").await;
    world.assert_goes_on().await;
}

#[tokio::test]
async fn a_server_that_became_a_replica() {
    let mut world = World::new().await;
    world.order("REPLICAOF 127.0.0.1 1").await;
    world.assert_refused("is a replica", "read_only").await;
    world.order("REPLICAOF NO ONE").await;
    world.assert_goes_on().await;
}

/// The address leads to the new master; the open connection still leads to the old one, which is a replica now.
#[tokio::test]
async fn a_failover_to_another_server() {
    let (old, new) = (Redis::start(), Redis::start());
    let location = tempfile::tempdir().expect("a folder");
    let name = location.path().join("redis.sock");
    std::os::unix::fs::symlink(old.socket(), &name).expect("a link");
    let observe = Observe::default();
    let folder = tempfile::tempdir().expect("a folder");
    let archive = DataFolder::open(folder.path()).and_then(|data| data.archive()).expect("an archive");
    let store = open(&format!("redis+unix://{}", name.display()), &observe, Arc::new(archive)).await;
    std::fs::remove_file(&name).expect("a link");
    std::os::unix::fs::symlink(new.socket(), &name).expect("a link");
    let mut command = redis::cmd("REPLICAOF");
    command.arg("127.0.0.1").arg(1);
    command.query_async::<()>(&mut operator(&old.url()).await).await.expect("a replica");
    accept(&store, 1).await.expect_err("the old one takes no writes");
    accept(&store, 1).await.expect("the new one does");
    let there: usize = redis::cmd("SCARD")
        .arg(store.keys().runs())
        .query_async(&mut operator(&new.url()).await)
        .await
        .expect("answered");
    assert_eq!(there, 1);
}

#[tokio::test]
async fn a_server_that_wants_a_password_now() {
    let mut world = World::new().await;
    world.order("CONFIG SET requirepass secret").await;
    world.order("CLIENT KILL TYPE normal SKIPME yes").await;
    // The first call finds the connection closed, the next cannot log in.
    world.accept(1).await.expect_err("the connection is gone");
    world.assert_refused("does not accept the user or password", "login").await;
    world.order("CONFIG SET requirepass ").await;
    world.assert_goes_on().await;
}

#[tokio::test]
async fn a_user_without_a_right() {
    let mut world = World::new().await;
    world.order("ACL SETUSER ada on >secret ~* &* +@all").await;
    let url = format!("{}?user=ada&pass=secret", world.server.url());
    world.store = open(&url, &world.observe, world.archive.clone()).await;
    world.order("ACL SETUSER ada -evalsha -set").await;
    world.assert_refused("does not let its user do that", "forbidden").await;
    world.order("ACL SETUSER ada +evalsha +set").await;
    world.assert_goes_on().await;
}

#[tokio::test]
async fn a_server_that_is_busy_with_a_script() {
    let mut world = World::new().await;
    world.order("CONFIG SET busy-reply-threshold 1").await;
    let mut other = operator(&world.server.url()).await;
    let endless = tokio::spawn(async move {
        let mut script = redis::cmd("EVAL");
        script.arg("while true do end").arg(0);
        script.query_async::<()>(&mut other).await
    });
    // Redis answers calls until the script has begun.
    while world.store.ready().await.is_ok() {}
    world.assert_refused("is busy with another client's script", "busy").await;
    world.order("SCRIPT KILL").await;
    endless.await.expect("it ended").expect_err("it was killed");
    world.assert_goes_on().await;
}

#[tokio::test]
async fn a_server_that_still_reads_its_data() {
    let mut world = World::new().await;
    let mut fill = redis::cmd("EVAL");
    fill.arg("for i = 1, 20000 do redis.call('SET', 'filler:' .. i, i) end").arg(0);
    fill.query_async::<()>(&mut world.operator).await.expect("filled");
    world.server.stop();
    // The delay is in microseconds for each key. The server answers clients after every thousand keys.
    world.server.start_unready(&["--key-load-delay", "100"]);
    while !world.store.ready().await.is_err_and(|error| error.to_string().contains("still reads its data")) {}
    world.assert_refused("still reads its data", "loading").await;
    // A store that is opened now waits until the server has loaded its data.
    let newcomer = open(&world.server.url(), &world.observe, world.archive.clone()).await;
    newcomer.ready().await.expect("it is ready");
    world.assert_goes_on().await;
}
