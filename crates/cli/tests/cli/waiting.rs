//! Redis and Postgres that are not running when a process starts.

use rustix::process::Signal;
use switchyard_test_servers::postgres::{Postgres, Sync};
use switchyard_test_servers::redis::Redis;

use crate::harness::{HELLO, Sandbox, assert_transcript};

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

#[test]
fn stores_that_come_later_are_waited_for() {
    let (mut redis, mut postgres) = (Redis::start(), Postgres::start(Sync::Off));
    redis.stop();
    postgres.stop();
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let stores = [("REDIS_URL", &*redis.url()), ("SWITCHYARD_POSTGRES", &*postgres.url())]
        .map(|(name, url)| (name, url.to_owned()));
    let stores: Vec<(&str, &str)> = stores.iter().map(|(name, url)| (*name, url.as_str())).collect();
    let (mut up, mut worker) = (sandbox.spawn_with(&UP, &stores), sandbox.spawn_with(&["worker"], &stores));
    for process in [&mut up, &mut worker] {
        let told = process.wait_for("waiting for it");
        assert!(told.starts_with("cannot connect to Postgres at 127.0.0.1:"), "{told}");
        assert!(
            told.ends_with(": Connection refused (os error 111); waiting for it, 30 s at most"),
            "{told}"
        );
    }
    postgres.start_again();
    for process in [&mut up, &mut worker] {
        let told = process.wait_for("waiting for it");
        assert!(told.starts_with("Redis at ") && told.contains("does not answer"), "{told}");
    }
    redis.start_again();
    worker.wait_for("works");
    let line = up.wait_for("http://");
    let server = format!("http://{}", line.split_once("http://").unwrap().1.split('/').next().unwrap());
    let ran = sandbox.json(&["run", "hello.yaml", "-i", "name=Ada", "--server", &server]);
    assert_eq!(ran["greeting"], "Hello, Ada!");
}

#[test]
fn nobody_is_waited_for_for_ever() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&UP);
    command.env("REDIS_URL", "redis://:hush@127.0.0.1:1").env("SWITCHYARD_STORES_WAIT", "300ms");
    let shown = crate::harness::transcript(&command.output().unwrap());
    assert_transcript!(shown, @r"
    exit 3
    --- stdout
    --- stderr
    Redis at 127.0.0.1:1 does not answer: Connection refused (os error 111); waiting for it, [TOOK] at most
    error: Redis at 127.0.0.1:1 does not answer: Connection refused (os error 111)
    hint: it did not come within [TOOK]; `stores.wait` is how long to wait
    ");
}

#[test]
fn one_that_refuses_is_not_waited_for() {
    let redis = Redis::with_options(|_| ["--requirepass", "hush"].map(str::to_owned).to_vec());
    let (sandbox, postgres) = (Sandbox::new(), Postgres::start(Sync::Off));
    let no_such = format!("{}nowhere", postgres.url().strip_suffix("postgres").unwrap());
    for (stores, said) in [
        ([("REDIS_URL", redis.url()), ("SWITCHYARD_POSTGRES", postgres.url())], "does not accept the user"),
        (
            [("REDIS_URL", redis.url()), ("SWITCHYARD_POSTGRES", no_such)],
            "database \"nowhere\" does not exist",
        ),
    ] {
        let stores: Vec<(&str, &str)> = stores.iter().map(|(name, url)| (*name, url.as_str())).collect();
        let (code, told) = sandbox.spawn_with(&UP, &stores).ends();
        assert_eq!(code, Some(3), "{told}");
        assert!(told.contains(said) && !told.contains("waiting"), "{told}");
    }
}

#[test]
fn whoever_waits_can_be_stopped() {
    let sandbox = Sandbox::new();
    let mut up = sandbox.spawn_with(&UP, &[("REDIS_URL", "redis://127.0.0.1:1")]);
    up.wait_for("waiting for it");
    up.send(Signal::TERM);
    assert_eq!(up.ends().0, Some(143));
}
