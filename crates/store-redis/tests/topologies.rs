//! Tests other kinds of servers: the store follows the sentinels' master through a failover, and refuses a cluster.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use redis::aio::MultiplexedConnection;
use switchyard_archive_sqlite::DataFolder;
use switchyard_store::HotStore;
use switchyard_store_redis::{RedisSettings, RedisStore, probe};
use switchyard_test_servers::free_port;
use switchyard_test_servers::redis::Redis;
use switchyard_test_servers::sentinel::{SERVICE, Sentinel};
use tempfile::TempDir;

/// The interval at which a test polls the state of another process.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn on_port(port: u16, options: &[&str]) -> Redis {
    let port = port.to_string();
    let words = [&["--port", port.as_str()][..], options].concat();
    Redis::with_options(|_| words.iter().map(|word| (*word).to_owned()).collect())
}

async fn connected(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a URL");
    client.get_multiplexed_async_connection().await.expect("it answers")
}

async fn open(url: &str, prefix: &str) -> Result<(RedisStore, TempDir), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = DataFolder::open(folder.path()).and_then(|data| data.archive()).expect("an archive");
    let settings = RedisSettings { prefix: prefix.to_owned(), ..RedisSettings::new(url) };
    let opened = RedisStore::open(settings, Arc::new(archive)).await;
    Ok((opened.map_err(|error| error.to_string())?, folder))
}

async fn refusal(url: &str) -> String {
    open(url, "").await.err().unwrap_or_else(|| panic!("{url} is not refused"))
}

/// Makes the replica the master, and waits until the sentinel names it.
async fn fail_over(sentinel: &Sentinel) {
    let client = redis::Client::open(sentinel.url()).expect("a URL");
    let mut events = client.get_async_pubsub().await.expect("it answers");
    events.subscribe("+switch-master").await.expect("subscribed");
    let mut order = connected(&sentinel.url()).await;
    let mut fail_over = redis::cmd("SENTINEL");
    fail_over.arg("FAILOVER").arg(SERVICE);
    // The sentinel refuses this until it has found the replica.
    while fail_over.query_async::<()>(&mut order).await.is_err() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    events.on_message().next().await.expect("a new master");
}

/// Waits until the sentinel has made the old master a replica: until then it takes writes, which are lost.
async fn is_demoted(master: &Redis) {
    let replica = redis::Value::BulkString(b"slave".to_vec());
    loop {
        // The sentinel closes the connections of a master that it demotes.
        let mut connection = connected(&master.url()).await;
        let role = redis::cmd("ROLE").query_async::<Vec<redis::Value>>(&mut connection).await;
        if role.is_ok_and(|role| role.first() == Some(&replica)) {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[tokio::test]
async fn the_master_that_sentinels_name_is_followed_through_a_failover() {
    let [first, second] = [free_port(), free_port()];
    let (master, replica) =
        (on_port(first, &[]), on_port(second, &["--replicaof", "127.0.0.1", &first.to_string()]));
    let sentinel = Sentinel::watch(first);
    let (store, _folder) = open(&sentinel.master_url(), "app:").await.expect("the master is there");
    store.ready().await.expect("it takes writes");
    fail_over(&sentinel).await;
    is_demoted(&master).await;
    while store.ready().await.is_err() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let definition = switchyard_core::Hash::of(b"text");
    store.keep_definition(definition, "text").await.expect("it takes writes");
    let key = store.keys().definition(definition);
    let kept: Option<String> = redis::cmd("GET")
        .arg(key)
        .query_async(&mut connected(&replica.url()).await)
        .await
        .expect("it answers");
    assert_eq!(kept.as_deref(), Some("text"), "the store writes to the new master");
}

#[tokio::test]
async fn a_service_that_sentinels_do_not_know_is_named() {
    let master = free_port();
    let _master = on_port(master, &[]);
    let sentinel = Sentinel::watch(master);
    let error = refusal(&sentinel.master_url().replace(SERVICE, "other")).await;
    assert!(error.contains("Redis at other (sentinels 127.0.0.1:1,"), "{error}");
    let error = refusal(&sentinel.url()).await;
    assert!(error.contains("is a sentinel and not a Redis: its address is redis+sentinel://"), "{error}");
}

#[tokio::test]
async fn a_cluster_is_refused_before_anything_is_written() {
    let error = refusal("redis+cluster://:secret@a:1,b:2").await;
    assert!(error.contains("redis+cluster://a:1,b:2 is a Redis Cluster"), "{error}");
    assert_eq!(probe("redis+cluster://a:1,b:2").await, None, "waiting would not help");
    let (port, bus) = (free_port(), free_port());
    let _node = on_port(port, &["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
    let error = refusal(&format!("redis://127.0.0.1:{port}")).await;
    assert!(error.contains("is a Redis Cluster, which the hot store does not run on"), "{error}");
}
