//! Tests every kind of connection: TLS, users with few rights, a password, a Unix socket, a prefix.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use switchyard_archive_sqlite::DataFolder;
use switchyard_conformance::hot_store::fresh_operation;
use switchyard_core::in_flight::{Command, NewRun, Want};
use switchyard_core::ir::sketch::Sketch;
use switchyard_core::run::{Accepted, ClaimRef, Concurrency, Settlement, TaskOutcome};
use switchyard_core::{Payload, RunId, Timestamp};
use switchyard_store::{HotStore, StoreError};
use switchyard_store_redis::{RedisSettings, RedisStore, probe};
use switchyard_test_servers::certificates::Certificates;
use switchyard_test_servers::free_port;
use switchyard_test_servers::redis::Redis;

/// The page that documents the rights a user needs.
const PAGE: &str = include_str!("../../../docs/operating/redis.md");

/// Executes a run to its end on this server, and makes the other calls of a process.
async fn works(url: &str, prefix: &str) -> Result<(), StoreError> {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = DataFolder::open(folder.path()).and_then(|data| data.archive()).expect("an archive");
    let settings = RedisSettings { prefix: prefix.to_owned(), ..RedisSettings::new(url) };
    let store = RedisStore::open(settings, Arc::new(archive)).await?;
    store.ready().await?;
    let ir = Sketch::chain(2).ir();
    store.learn(ir.clone()).await?;
    let id = RunId::new(Timestamp::from_millis(1), rand::random(), 0);
    let concurrency = Some(Concurrency { key: "tenant".into(), limit: 1 });
    let deadline = Some(Timestamp::from_millis(i64::MAX / 4_000));
    let accepted =
        Accepted { concurrency, deadline, ..Accepted::plain("w".into(), ir.hash, Payload::null()) };
    let mut news = store.follow(id);
    store.accept(NewRun { id, accepted }).await?;
    let lease = Some(Duration::from_secs(60));
    let want = Want { worker: "w".into(), queues: ["work".into()].into(), max: 1, lease };
    store.work_ready(&want).await;
    let mut done = Vec::new();
    for step in 0..3 {
        let (_, tasks) = store.step(std::mem::take(&mut done), &want).await?;
        if step == 0 {
            store.command(id, fresh_operation(), Command::Pause { by: "me".into() }).await?;
            store.command(id, fresh_operation(), Command::Resume { by: "me".into() }).await?;
        }
        for task in tasks {
            let claim = ClaimRef { run: task.run, node: task.node.clone(), claim: task.claim };
            store.heartbeat(std::slice::from_ref(&claim), lease).await?;
            done.push(Settlement { claim, outcome: TaskOutcome::Succeeded(Payload::null()) });
        }
    }
    store.fire_timers().await?;
    store.reclaim().await?;
    store.archived().await?;
    store.unarchived().await?;
    store.queues().await?;
    news.wait_for(|change| change.ended).await.expect("the store lives");
    assert_eq!(store.size().await?.runs, 0);
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn with_tls(certificates: &Certificates, port: u16) -> Redis {
    Redis::with_options(|_| {
        let [cert, key, ca] =
            [certificates.certificate(), certificates.key(), certificates.ca()].map(|path| shown(&path));
        let port = port.to_string();
        let words = [
            "--tls-port",
            &port,
            "--tls-cert-file",
            &cert,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            "optional",
            "--requirepass",
            "secret",
        ];
        words.map(str::to_owned).to_vec()
    })
}

#[tokio::test]
async fn tls_with_an_authority_of_ones_own() {
    let (certificates, port) = (Certificates::make(), free_port());
    let _server = with_tls(&certificates, port);
    let url = format!("rediss://:secret@localhost:{port}");
    let with_ca = format!("{url}?ssl_ca_certs={}", shown(&certificates.ca()));
    works(&with_ca, "").await.expect("it works");
    works(&with_ca.replace("localhost", "127.0.0.1"), "again:").await.expect("it works");
    let error = works(&url, "").await.expect_err("the authority is unknown").to_string();
    assert!(error.contains("does not answer") && error.to_lowercase().contains("certificate"), "{error}");
    let strangers = Certificates::make();
    let other = format!("{url}?ssl_ca_certs={}", shown(&strangers.ca()));
    works(&other, "").await.expect_err("that is another authority");
    assert_eq!(probe(&other).await, None, "it will not be trusted later either");
    let absent = format!("rediss://localhost:{}", free_port());
    assert!(probe(&absent).await.is_some_and(|why| why.to_string().contains("does not answer")));
    let error = works(&with_ca.replace("rediss", "redis"), "").await.expect_err("no TLS, no certificates");
    assert!(error.to_string().contains("certificates are for rediss:// URLs"), "{error}");
}

#[tokio::test]
async fn tls_with_a_certificate_of_the_client() {
    let (certificates, port) = (Certificates::make(), free_port());
    let server = with_tls(&certificates, port);
    let mut strict = redis::cmd("CONFIG");
    strict.arg("SET").arg("tls-auth-clients").arg("yes");
    let operator = redis::Client::open(format!("{}?pass=secret", server.url())).expect("a URL");
    let mut operator = operator.get_multiplexed_async_connection().await.expect("Redis answers");
    strict.query_async::<()>(&mut operator).await.expect("set");
    let url = format!("rediss://:secret@localhost:{port}?ssl_ca_certs={}", shown(&certificates.ca()));
    works(&url, "").await.expect_err("it has no certificate");
    let (certificate, key) = (shown(&certificates.certificate()), shown(&certificates.key()));
    works(&format!("{url}&ssl_certfile={certificate}&ssl_keyfile={key}"), "").await.expect("it works");
}

#[tokio::test]
async fn tcp_with_a_password() {
    let port = free_port();
    let words = ["--port", &port.to_string(), "--requirepass", "p@ss"].map(str::to_owned).to_vec();
    let _server = Redis::with_options(|_| words);
    works(&format!("redis://:p%40ss@127.0.0.1:{port}/3"), "").await.expect("it works");
    for url in [format!("redis://:wrong@127.0.0.1:{port}"), format!("redis://127.0.0.1:{port}")] {
        let error = works(&url, "").await.expect_err("that is not the password").to_string();
        assert!(error.contains("does not accept the user or password"), "{error}");
        assert!(!error.contains("wrong"), "{error}");
    }
}

#[tokio::test]
async fn a_user_needs_no_more_rights_than_the_page_lists() {
    let rule = PAGE.lines().find(|line| line.starts_with("ACL SETUSER switchyard ")).expect("a rule");
    let server = Redis::start();
    let operator = redis::Client::open(server.url()).expect("a URL");
    let mut operator = operator.get_multiplexed_async_connection().await.expect("Redis answers");
    let mut words = rule.split(' ');
    let mut command = redis::cmd(words.next().expect("a word"));
    words.for_each(|word| {
        command.arg(word);
    });
    command.query_async::<()>(&mut operator).await.expect("a user");
    let url = format!("{}?user=switchyard&pass=secret", server.url());
    works(&url, "yard:").await.expect("it works");
    let error = works(&url, "other:").await.expect_err("those keys belong to another prefix").to_string();
    assert!(error.contains("does not let its user do that"), "{error}");
}
